/** The same small program for every way to load the package: two tokens, so the third call is denied. */
export const use = (header: string): string => `${header}
const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const answers = ["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok);
globalThis.answers = JSON.stringify(answers);
`;

export const ANSWERS = "[true,true,false,true]";
