export const searchOptions: object;
