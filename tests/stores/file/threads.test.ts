/** Worker threads of one process. */
import { afterAll, expect, test } from "vitest";
import { clear, folder, run } from "./fixture.ts";

afterAll(clear);

test("four worker threads take exactly the capacity, and the folder outlives them", async () => {
  const path = folder();
  expect(await run("threads.mjs", [path]).over).toEqual([0, "1000 0\n"]);
  expect(await run("threads.mjs", [path]).over).toEqual([0, "0 0\n"]);
});
