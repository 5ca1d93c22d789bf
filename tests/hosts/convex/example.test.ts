/** The small example for Convex, in convex-test. */
import { expect, test } from "vitest";
import { inRuntime } from "../runtimes.ts";

await inRuntime("convex", async () => {
  test("examples/convex grants three messages of a user", async () => {
    const names = ["convex-test", "../../../examples/convex/schema.js", "../../../examples/convex/messages.js"];
    const [{ convexTest }, schema, messages] = (await Promise.all(names.map((name) => import(name)))) as [
      { convexTest: (schema: unknown, modules: unknown) => { mutation(of: unknown, args: object): Promise<unknown> } },
      { default: unknown },
      { send: unknown },
    ];
    const modules = { "./_generated/api.js": async () => ({}), "./messages.js": async () => messages };
    const t = convexTest(schema.default, modules);
    const { makeFunctionReference } = (await import("convex/server" as string)) as {
      makeFunctionReference: (name: string) => unknown;
    };
    const send = () => t.mutation(makeFunctionReference("messages:send"), { user: "ann", text: "hello" });
    for (let i = 0; i < 3; i++) expect(await send()).toMatchObject({ ok: true });
  });
});
