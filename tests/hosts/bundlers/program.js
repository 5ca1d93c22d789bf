// The program for every bundler: three calls on two tokens.
import { defineLimits, MINUTE } from "tidegate";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
globalThis.answers = JSON.stringify(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok));
