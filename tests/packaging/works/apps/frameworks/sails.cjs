const { Sails } = require("sails");
const { defineLimits, MINUTE } = require("tidegate");
const { rateLimit } = require("tidegate/express");

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

async function main() {
  const { freePort, report } = await import("./client.js");
  const port = await freePort();
  const settings = {
    port,
    hooks: { grunt: false, session: false },
    log: { level: "error" },
    http: { middleware: { order: ["limited", "router"], limited: rateLimit(limits, { name: "send" }) } },
    routes: { "GET /hello": (_request, response) => response.send("hello") },
  };
  new Sails().lift(settings, (error) => {
    if (error) throw error;
    report([port, "/hello"]);
  });
}
main();
