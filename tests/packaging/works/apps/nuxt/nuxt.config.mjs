// Nitro copies only the ES modules of a package outside the bundle, and Node.js loads the CommonJS ones.
export default { compatibilityDate: "2026-01-01", telemetry: false, nitro: { externals: { inline: ["tidegate"] } } };
