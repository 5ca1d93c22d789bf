/** The networks of `trust`: how IPv4 ones are written, and that a list is read as it is now. */
import { expect, test } from "vitest";
import { clientIp } from "../src/http/index.ts";

const from = (address: string) => ({ address, headers: { "x-forwarded-for": "1.2.3.4" } });
const trusts = (network: string, peer: string): boolean => clientIp(from(peer), { trust: [network] }) === "1.2.3.4";

test("an IPv4 network within IPv6 is the IPv4 network, whichever way its addresses are written", () => {
  for (const network of ["::ffff:10.0.0.0/104", "::FFFF:a00:0/104", "64:ff9b::10.0.0.0/104"]) {
    for (const inside of ["10.255.0.1", "::ffff:10.255.0.1"]) expect(trusts(network, inside), network).toBe(true);
    for (const outside of ["11.0.0.1", "2001:db8::1"]) expect(trusts(network, outside), network).toBe(false);
  }
  expect(trusts("::ffff:0:0/96", "203.0.113.9")).toBe(true);
  expect(trusts("::ffff:10.0.0.1/128", "10.0.0.1")).toBe(true);
  expect(trusts("::ffff:10.0.0.1", "10.0.0.1")).toBe(true);
  expect(trusts("::ffff:10.0.0.1", "10.0.0.2")).toBe(false);
});

test.each([
  "::ffff:10.0.0.0/8",
  "64:ff9b::/32",
  "::ffff:0:0/95",
  "::ffff:10.0.0.0/129",
  "10.0.0.0/8x",
  "10.0.0.0/33",
  "proxy.local",
  "10.0.0.0/0008",
  "/10.0.0.0/8",
  "10.0.0.0%eth0",
])("%s, which is no address and no network, is refused", (network) => {
  expect(() => trusts(network, "10.0.0.1")).toThrow(
    `\`trust\` must be addresses and networks such as "10.0.0.0/8", where an IPv4 one within IPv6 has 96 to 128 bits; got "${network}"`,
  );
});

test("headers that were not awaited, as Next.js gives them, are refused: all clients would have one key", () => {
  const headers = Promise.resolve(new Headers({ "x-forwarded-for": "1.2.3.4" }));
  const rule = "`headers` must be a Headers, or an object of headers; got a promise; `await` it first";
  expect(() => clientIp({ headers }, { trust: 1 })).toThrow(rule);
  expect(() => clientIp({ headers }, { header: "x-real-ip" })).toThrow(rule);
  expect(() => clientIp({ headers: "x-real-ip: 1.2.3.4" as never }, { trust: 1 })).toThrow(
    "`headers` must be a Headers",
  );
  for (const trust of [undefined, 0]) expect(clientIp({ address: "192.0.2.1", headers }, { trust })).toBe("192.0.2.1");
});

test("up to 100 proxies are trusted", () => {
  expect(clientIp(from("192.0.2.1"), { trust: 100 })).toBe("1.2.3.4");
  const rule = "`trust` must be a number of proxies, an integer from 0 to 100";
  for (const trust of [101, -1, 0.5, "1" as never, true as never])
    expect(() => clientIp(from("192.0.2.1"), { trust })).toThrow(rule);
});

test("a `header` that is no header's name is refused, and one with a list of addresses without `trust`", () => {
  for (const header of ["x-real-ip:", " x-real-ip", "", 5 as never])
    expect(() => clientIp(from("192.0.2.1"), { header })).toThrow("`header` must be a header's name");
  for (const header of ["X-Forwarded-For", "Forwarded"])
    expect(() => clientIp(from("192.0.2.1"), { header })).toThrow(
      "`trust` must be a number of proxies or their networks",
    );
});

test("a platform's header may have blanks around its address, and where it has none the peer is the client", () => {
  const read = (value: unknown) =>
    clientIp({ address: "192.0.2.1", headers: { "x-real-ip": value, get: 5 } }, { header: "x-real-ip" });
  expect([read(" 1.2.3.4 "), read("none"), read(5)]).toEqual(["1.2.3.4", "192.0.2.1", "192.0.2.1"]);
});

test("a change to a list of trusted networks applies to the next request", () => {
  const trust = ["10.0.0.0/8"];
  const keys = (): string[] => ["10.0.0.1", "192.0.2.1"].map((peer) => clientIp(from(peer), { trust }));
  expect(keys()).toEqual(["1.2.3.4", "192.0.2.1"]);
  trust[0] = "192.0.2.0/24";
  expect(keys()).toEqual(["10.0.0.1", "1.2.3.4"]);
  trust.push("10.0.0.0/8");
  expect(keys()).toEqual(["1.2.3.4", "1.2.3.4"]);
  trust.length = 0;
  expect(keys()).toEqual(["10.0.0.1", "192.0.2.1"]);
  trust.push("proxy.local");
  expect(keys).toThrow('`trust` must be addresses and networks such as "10.0.0.0/8"');
});

test("a name in other letters, as in an event of API Gateway v1, is the header's where it is the only one", () => {
  const headers = { "X-Forwarded-For": "6.6.6.6, 1.2.3.4", "X-Real-IP": "192.0.2.7" };
  expect(clientIp({ headers }, { trust: 1 })).toBe("1.2.3.4");
  expect(clientIp({ headers }, { header: "x-real-ip" })).toBe("192.0.2.7");
  expect(clientIp({ headers: { "x-forwarded-for": "192.0.2.8", ...headers } }, { trust: 1 })).toBe("192.0.2.8");
  expect(clientIp({ headers: { "X-FORWARDED-FOR": "6.6.6.6", ...headers } }, { trust: 1 })).toBe("unknown");
});
