/** The service under an SDK of OpenTelemetry that the process was started with. */
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { expect, test } from "vitest";
import { POLICIES, root, serving } from "./service.ts";

interface Point {
  readonly scope: { readonly name: string; readonly version: string };
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value: unknown;
}

test("its SDK gets what /metrics has: decisions, waits, responses and reloads", async () => {
  const sdk = pathToFileURL(join(root, "tests/serve/otel.mjs")).href;
  await using service = await serving(POLICIES, [], { NODE_OPTIONS: `--import ${sdk}` });
  for (let i = 0; i < 5; i++) await service.post("/v1/decide", { name: "api", key: "192.0.2.1" });
  service.running.child.kill("SIGHUP");
  await service.logged("policies reloaded");
  let points: readonly Point[] = [];
  const found = (name: string, attributes: object) =>
    points.find((point) => point.name === name && expect.objectContaining(attributes).asymmetricMatch(point.attributes))
      ?.value;
  for (let i = 1; found("tidegate.policy.reloads", { result: "ok" }) !== 1; i++) {
    points = (await service.logged("metrics", i))["values"] as readonly Point[];
  }
  expect(points[0]?.scope).toMatchObject({ name: "tidegate-serve", version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  const decisions = { limit: "api", operation: "limit", degraded: false };
  expect(found("tidegate.decisions", { ...decisions, outcome: "granted" })).toBe(3);
  expect(found("tidegate.decisions", { ...decisions, outcome: "denied" })).toBe(2);
  expect(found("tidegate.wait", { limit: "api" })).toMatchObject({ count: 2 });
  expect(found("tidegate.http.responses", { route: "/v1/decide", status: "200" })).toBe(5);
});
