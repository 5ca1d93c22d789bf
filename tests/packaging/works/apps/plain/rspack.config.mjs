export default ({ server = false }) => ({
  mode: "production",
  entry: server ? "./server.mjs" : "./program.mjs",
  ...(server ? { target: "node20" } : {}),
});
