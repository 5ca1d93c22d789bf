/**
 * For Vite: as it loads, uPlot makes a format of numbers for the browser's language. Where that is not a language tag, as C is
 * in WebKitGTK with the locale C.UTF-8, that throws, and the page stayed empty. The pages write their own numbers in English.
 *
 * @type {import("vite").Plugin}
 */
export const uplot = {
  name: "uplot",
  transform(code, id) {
    if (!id.endsWith("/uPlot.esm.js")) return undefined;
    const found = "domEnv ? nav.language : 'en-US'";
    if (!code.includes(found)) throw new Error(`uPlot has no ${found}`);
    return { code: code.replace(found, '"en"'), map: null };
  },
};
