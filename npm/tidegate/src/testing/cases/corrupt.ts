import { HOUR } from "../../limit/duration.ts";
import { isStoreError } from "../../limit/errors.ts";
import { same } from "../expectation.ts";
import { type Cases, needs, type Stage } from "../subject.ts";

const bucket = { kind: "token bucket", rate: 5, period: HOUR } as const;
const configs = { login: bucket, also: bucket };
const KEYS = ["a", "bad", "b", "bad", "c"];

/** Whether each call was granted, or what its error is about. */
const outcomes = (calls: readonly Promise<{ ok: boolean }>[]): Promise<unknown[]> =>
  Promise.all(
    calls.map((call) =>
      call.then(
        ({ ok }) => ok,
        (error: unknown) => (isStoreError(error) ? error.scope : error),
      ),
    ),
  );

async function damaged({ limits, corrupt }: Stage) {
  const subject = limits(configs);
  await subject.limit("login", { key: "bad" });
  await corrupt?.("login:bad");
  return subject;
}

export const CORRUPT: Cases = {
  "a corrupt state fails the calls on its key, and not those that run beside them": async (stage) => {
    const subject = await damaged(stage);
    const call = (key: string) => subject.limit("login", { key });
    const expected = [true, "key", true, "key", true];
    same(await outcomes(KEYS.map(call)), expected, "concurrent calls, two of them on the corrupt key");
    same(await outcomes([...KEYS.slice(1), "a"].map(call)), [...expected.slice(1), true], "the same again");
    const value = (key: string) => subject.getValue("login", { key }).then(() => ({ ok: true }));
    same(await outcomes(KEYS.map(value)), expected, "getValue");
    same((await subject.getValue("login", { key: "a" })).value, 3, "what is left of a healthy key");
  },
  "a corrupt state is kept until its key is reset, which starts full": async (stage) => {
    const subject = await damaged(stage);
    for (const operation of ["limit", "check", "charge", "give"] as const) {
      same(await outcomes([subject[operation]("login", { key: "bad" })]), ["key"], operation);
    }
    await subject.reset("login", { key: "bad" });
    same((await subject.limit("login", { key: "bad" })).value, 4, "a call after the reset");
  },
  "limitAll with a corrupt state takes from none": needs("limitAll", async (stage) => {
    const subject = await damaged(stage);
    const both = [
      { name: "also", key: "bad" },
      { name: "login", key: "bad" },
    ] as const;
    same(await outcomes([subject.limitAll(both)]), ["key"], "limitAll");
    same(await outcomes([subject.limitAll([both[0]])]), [true], "limitAll without it");
    same((await subject.getValue("also", { key: "bad" })).value, 4, "what is left of the other limit");
  }),
};
