export default {
  build: { rollupOptions: { output: { entryFileNames: "assets/[name].js" } } },
  ssr: { noExternal: true },
};
