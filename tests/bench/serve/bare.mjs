// The child: a bare handler on the service's own server, with bodies of the same size. Sends its port.
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const ANSWER = JSON.parse(process.argv[2]);

const app = new Hono();
app.post("/v1/decide", async (c) => {
  await c.req.json();
  return c.json(ANSWER);
});
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) => process.send({ port }));
process.on("disconnect", () => process.exit());
