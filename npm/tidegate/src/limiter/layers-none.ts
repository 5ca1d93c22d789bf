// Browsers and React Native: a store that can fail brings its layers, so that a page in memory does not download them.
export const layers: undefined = undefined;
