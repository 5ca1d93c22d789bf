/** Programs that run beside a test. */
import { expect, test } from "vitest";
import { Program } from "../support/processes.ts";

test("a program that has exited is stopped with the children that it has left", async () => {
  const program = new Program("sh", ["-c", "sleep 1000 & exit 3"]);
  const exited = new Promise((resolve) => program.child.once("exit", resolve));
  expect(await exited).toBe(3);
  await program.stop();
  expect(await program.ended).toBe(3);
  // Then there is nothing to stop.
  await program.stop();
});

test("a program that cannot be started can be stopped, and is an error where it is waited for", async () => {
  const program = new Program("./none", []);
  await program.stop();
  await expect(program.until(() => undefined)).rejects.toThrow("./none ended with spawn ./none ENOENT");
});
