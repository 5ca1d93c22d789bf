import { expect, test } from "vitest";
import { singleFlight } from "../../src/client/index.ts";

/** A function whose calls end when the test ends them. */
function held() {
  const ends: ((value: string | Error) => void)[] = [];
  const fn = (...args: unknown[]): Promise<string> =>
    new Promise((resolve, reject) => {
      ends.push((value) => (value instanceof Error ? reject(value) : resolve(`${args.join()}: ${value}`)));
    });
  return { ends, fn };
}

test("long bigints are different calls", async () => {
  const { ends, fn } = held();
  const load = singleFlight(fn);
  void load(10n ** 100n);
  void load(10n ** 100n + 1n);
  expect(ends).toHaveLength(2);
});

test("concurrent identical calls share one call and its error; later calls start a new one", async () => {
  const { ends, fn } = held();
  const load = singleFlight(fn);
  const calls = [load("a", 1), load("a", 1), load("b", 1)];
  expect(ends).toHaveLength(2);
  ends[0]?.("first");
  ends[1]?.("second");
  expect(await Promise.all(calls)).toEqual(["a,1: first", "a,1: first", "b,1: second"]);
  const failing = [load("a", 1), load("a", 1)].map((call) => call.catch((error: Error) => error.message));
  ends[2]?.(new Error("broken"));
  expect(await Promise.all(failing)).toEqual(["broken", "broken"]);
  expect(ends).toHaveLength(3);
});

test("calls that differ only in an argument's type, or in `this`, are not shared", async () => {
  const { ends, fn } = held();
  const load = singleFlight(fn);
  for (const arg of ["1", 1, 1n, true, "true", null, undefined, "null"]) void load(arg);
  void load("a,b", "c");
  void load("a", "b,c");
  expect(ends).toHaveLength(10);
  const [one, other] = [{ load }, { load }];
  void one.load("x");
  void one.load("x");
  void other.load("x");
  expect(ends).toHaveLength(12);
  // A static method's `this` is its class.
  const [first, second] = [() => 1, () => 2];
  for (const self of [first, first, second, "first", "second", undefined]) void load.call(self as never, "x");
  expect(ends).toHaveLength(17);
  const alone = load.call(null, "y");
  ends[17]?.("end");
  expect(await alone).toBe("y: end");
});

test("the end of one call leaves the others of its `this` shared", async () => {
  const { ends, fn } = held();
  const load: (id: string) => Promise<string> = singleFlight((id: string) => {
    // A call within a call.
    if (id === "outer") void load("inner");
    return fn(id);
  });
  void load("outer");
  ends[0]?.("end");
  await load("inner");
  void load("outer");
  expect(ends).toHaveLength(2);
});

test("calls with equal keys are shared; without `key`, object arguments are refused", async () => {
  const { ends, fn } = held();
  const load = singleFlight(fn, { key: (...args) => (args[0] as { id: string }).id });
  void load({ id: "a", seen: 1 });
  void load({ id: "a", seen: 2 });
  expect(ends).toHaveLength(1);
  for (const arg of [{}, () => 1, Symbol("a")])
    await expect(singleFlight(fn)(arg)).rejects.toThrow("`key` must be given if an argument is neither a string");
  await expect(singleFlight(fn, { key: () => 1 as never })("a")).rejects.toThrow("`key` must be a string; got 1");
  expect(() => singleFlight(1 as never)).toThrow("`fn` must be a function");
});

test("a function that throws synchronously rejects, and the next call runs it again", async () => {
  let calls = 0;
  const load = singleFlight(() => {
    if (++calls === 1) throw new Error("synchronous");
    return "fine";
  });
  await expect(load()).rejects.toThrow("synchronous");
  expect(await load()).toBe("fine");
});
