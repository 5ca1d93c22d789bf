import { createHash } from "node:crypto";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import { generalizedUtf8 } from "../src/engine/utf8.ts";
import { addressKey, boundedKey, clientIp, tupleKey } from "../src/http/index.ts";
import { isWithin, parseAddress } from "../src/http/address.ts";
import { sha256 } from "../src/http/sha256.ts";
import { defineLimits, MINUTE } from "../src/index.ts";

describe("addressKey", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["0.0.0.0", "0.0.0.0"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:c000:0201", "192.0.2.1"],
    ["::ffff:192.0.2.1%eth0", "192.0.2.1"],
    ["64:ff9b::192.0.2.1", "192.0.2.1"],
    ["64:ff9b::c000:201", "192.0.2.1"],
    ["64:ff9b:1::1", "64:ff9b:1::/56"],
    ["2001:db8:0:1234::1", "2001:db8:0:1200::/56"],
    ["2001:DB8:0:12FF:ffff:ffff:ffff:ffff", "2001:db8:0:1200::/56"],
    ["2001:0db8:0000:1234:0000:0000:0000:0001", "2001:db8:0:1200::/56"],
    ["2001:db8:0:1300::1", "2001:db8:0:1300::/56"],
    ["fe80::1%eth0", "fe80::/56"],
    ["::1", "::/56"],
    ["::", "::/56"],
  ])("%s is the client %s", (address, key) => expect(addressKey(address)).toBe(key));

  test.each([
    "",
    "unknown",
    "_hidden",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "0x1.2.3.4",
    "1.2.3.4%eth0",
    " 1.2.3.4",
    "1.2.3.4:80",
    "[::1]",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "12345::",
    "g::",
    "::1.2.3",
    "1.2.3.4::",
    "::1.2.3.4:5",
    "::ffff:1.2.3.010",
    "::ffff:1.2.3.0x4",
    ":1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:",
    "__proto__",
    "1".repeat(100_000),
  ])("%s is no address", (text) => expect(addressKey(text)).toBeUndefined());

  test("the prefix may be 32 to 128", () => {
    expect(addressKey("2001:db8:ffff::1", { prefix: 32 })).toBe("2001:db8::/32");
    expect(addressKey("2001:db8:ffff:ffff:ff::1", { prefix: 64 })).toBe("2001:db8:ffff:ffff::/64");
    expect(addressKey("2001:db8:ffff:ffff:ff::1", { prefix: 57 })).toBe("2001:db8:ffff:ff80::/57");
    expect(addressKey("2001:db8::1", { prefix: 128 })).toBe("2001:db8::1");
    for (const prefix of [31, 129, 56.5, Number.NaN, "56" as never]) {
      expect(() => addressKey("::1", { prefix })).toThrow("`prefix` must be bits, an integer from 32 to 128; got");
    }
  });

  const v6 = fc.array(fc.oneof(fc.constantFrom(0, 0, 0xffff), fc.nat(0xffff)), { minLength: 8, maxLength: 8 });
  test("writes every IPv6 address as the URL standard does, however it was written", () => {
    fc.assert(
      fc.property(v6, fc.boolean(), (groups, long) => {
        const address = new ipaddr.IPv6(groups);
        fc.pre(!address.isIPv4MappedAddress() && address.range() !== "rfc6052");
        const text = long ? address.toNormalizedString().toUpperCase() : address.toRFC5952String();
        expect(`[${addressKey(text, { prefix: 128 })}]`).toBe(new URL(`http://[${text}]`).hostname);
      }),
      { numRuns: 2000 },
    );
  });

  test("groups into the networks that ipaddr.js does", () => {
    fc.assert(
      fc.property(v6, fc.integer({ min: 32, max: 127 }), (groups, prefix) => {
        const theirs = new ipaddr.IPv6(groups);
        fc.pre(!theirs.isIPv4MappedAddress() && theirs.range() !== "rfc6052");
        const [network, bits] = addressKey(theirs.toString(), { prefix })?.split("/") ?? [];
        const base = ipaddr.IPv6.networkAddressFromCIDR(`${theirs.toString()}/${prefix}`);
        expect([network, bits]).toEqual([base.toRFC5952String(), String(prefix)]);
      }),
      { numRuns: 2000 },
    );
  });

  test("accepts as addresses the same texts as ipaddr.js, also of those that are nearly one", () => {
    const pieces = fc.constantFrom(...": :: . 0 1 ff FFFF 12345 255 256 1.2.3.4 01 g % /".split(" "));
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join("");
        fc.pre(!text.includes("%")); // zones: they allow fewer characters than hosts do
        const ours = parseAddress(text) !== undefined;
        const theirs = text.includes(":") ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text);
        // They let the digits of a dotted end be octal, which we never do.
        fc.pre(!(theirs && !ours && /(^|[.:])0\d/.test(text)));
        expect([text, ours]).toEqual([text, theirs]);
      }),
      { numRuns: 5000 },
    );
  });

  test("is within the same networks as by ipaddr.js, for any prefix length", () => {
    fc.assert(
      fc.property(v6, v6, fc.nat(128), fc.boolean(), (groups, others, bits, near) => {
        // Near: the same but for one bit.
        const flipped = groups.map((group, i) => (i === bits >> 4 ? group ^ (0x8000 >> (bits & 15)) : group));
        const [one, two] = [new ipaddr.IPv6(groups), new ipaddr.IPv6(near ? flipped : others)];
        expect(isWithin(one.toByteArray(), two.toByteArray(), bits)).toBe(one.match(two, bits));
      }),
      { numRuns: 5000 },
    );
    expect(isWithin([1, 2, 3, 4], new ipaddr.IPv6([258, 772, 0, 0, 0, 0, 0, 0]).toByteArray(), 0)).toBe(false);
  });

  test("a household's IPv6 addresses share one bucket, and IPv4 clients never do", () => {
    const keysOf = (address: (i: string) => string): unknown[] =>
      Array.from({ length: 256 }, (_, i) => addressKey(address(i.toString(16))));
    expect(new Set(keysOf((i) => `2001:db8:0:12${i.padStart(2, "0")}:${i}::${i}`))).toEqual(
      new Set(["2001:db8:0:1200::/56"]),
    );
    expect(new Set(keysOf((i) => `2001:db8:${i}::1`)).size).toBe(256);
    expect(new Set(keysOf((i) => `::ffff:a00:${i}`)).size).toBe(256);
  });
});

describe("clientIp", () => {
  const from = (xff: string | string[] | undefined, remoteAddress = "10.0.0.1") => ({
    socket: { remoteAddress },
    headers: { "x-forwarded-for": xff },
  });

  test("a header that is only inherited is not read", () => {
    const headers: object = Object.create({ "x-real-ip": "192.0.2.1" });
    expect(clientIp({ headers }, { header: "x-real-ip" })).toBe("unknown");
    expect(clientIp({ headers: { "x-real-ip": "192.0.2.1" } }, { header: "x-real-ip" })).toBe("192.0.2.1");
  });

  test("X-Forwarded-For is not read by default", () => {
    expect(clientIp(from("1.2.3.4"))).toBe("10.0.0.1");
    expect(clientIp(from("1.2.3.4"), { trust: 0 })).toBe("10.0.0.1");
    expect(clientIp({ socket: { remoteAddress: "::ffff:10.0.0.1" } })).toBe("10.0.0.1");
  });

  test("trusted hops are counted from the right", () => {
    expect(clientIp(from("6.6.6.6, 1.2.3.4"), { trust: 1 })).toBe("1.2.3.4");
    expect(clientIp(from("6.6.6.6, 1.2.3.4, 10.0.0.2"), { trust: 2 })).toBe("1.2.3.4");
    expect(clientIp(from(["6.6.6.6", "1.2.3.4"]), { trust: 1 })).toBe("1.2.3.4");
    expect(clientIp(from("1.2.3.4"), { trust: 5 })).toBe("1.2.3.4");
    expect(clientIp(from("2001:db8::1"), { trust: 1 })).toBe("2001:db8::/56");
    expect(
      clientIp({ address: "10.0.0.1", headers: new Headers({ "X-Forwarded-For": "6.6.6.6, 1.2.3.4" }) }, { trust: 1 }),
    ).toBe("1.2.3.4");
  });

  const left = fc.oneof(
    fc.string(),
    fc.constantFrom("", ",", ",,,", "6.6.6.6", '"', '\\"', "[::1", "unknown", 'for="', "for=6.6.6.6", 'for="6.6.6.6'),
    fc.ipV4(),
    fc.ipV6(),
  );
  const anything = fc.array(left, { maxLength: 5 }).map((parts) => parts.join(","));
  test("whatever a client writes at the left, its key does not move", () => {
    fc.assert(
      fc.property(anything, fc.constantFrom("", ":443"), (forged, port) => {
        const xff = `${forged}, 1.2.3.4${port}, 10.0.0.2`;
        expect(clientIp(from(xff), { trust: 2 })).toBe("1.2.3.4");
        expect(clientIp(from(xff), { trust: ["10.0.0.0/8"] })).toBe("1.2.3.4");
        const headers = { forwarded: `${forged}, for=1.2.3.4;proto=https,by=x;For="[::ffff:10.0.0.2]:80"` };
        const request = { socket: { remoteAddress: "10.0.0.1" }, headers };
        expect(clientIp(request, { trust: 2, header: "Forwarded" })).toBe("1.2.3.4");
        expect(clientIp(request, { trust: ["10.0.0.0/8"], header: "forwarded" })).toBe("1.2.3.4");
      }),
      { numRuns: 1000 },
    );
  });

  test("an entry that is no address ends the walk: never further left, never an exception", () => {
    expect(clientIp(from("6.6.6.6, unknown, 10.0.0.2"), { trust: 3 })).toBe("10.0.0.2");
    expect(clientIp(from("6.6.6.6, _hidden"), { trust: 2 })).toBe("10.0.0.1");
    expect(clientIp(from("garbage"), { trust: 1 })).toBe("10.0.0.1");
    expect(clientIp(from(undefined), { trust: 1 })).toBe("10.0.0.1");
    expect(clientIp(from("6.6.6.6,,, 1.2.3.4 ,, "), { trust: 1 })).toBe("1.2.3.4");
  });

  test("networks are trusted only from an address within them", () => {
    const trust = ["10.0.0.0/8", "2001:db8:ffff::/48", "203.0.113.7"];
    expect(clientIp(from("1.2.3.4", "10.200.0.1"), { trust })).toBe("1.2.3.4");
    expect(clientIp(from("1.2.3.4", "11.0.0.1"), { trust })).toBe("11.0.0.1");
    expect(clientIp(from("1.2.3.4", "::ffff:10.0.0.1"), { trust })).toBe("1.2.3.4");
    expect(clientIp(from("1.2.3.4", "2001:db8:ffff:1::1"), { trust })).toBe("1.2.3.4");
    expect(clientIp(from("1.2.3.4", "203.0.113.8"), { trust })).toBe("203.0.113.8");
    expect(clientIp(from("6.6.6.6, 1.2.3.4, 203.0.113.7, 10.1.1.1"), { trust })).toBe("1.2.3.4");
    expect(clientIp(from("1.2.3.4"), { trust: [] })).toBe("10.0.0.1");
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), fc.integer({ min: 0, max: 32 }), (peer, base, bits) => {
        const inside = ipaddr.IPv4.parse(peer).match(ipaddr.IPv4.parse(base), bits);
        expect(clientIp(from("1.2.3.4", peer), { trust: [`${base}/${bits}`] })).toBe(inside ? "1.2.3.4" : peer);
      }),
    );
  });

  test("Forwarded: a pair inside another pair's quotes is not taken for one", () => {
    const request = (forwarded: string) => ({ address: "10.0.0.1", headers: { forwarded } });
    const options = { trust: 1, header: "forwarded" };
    expect(clientIp(request('host="a;for=6.6.6.6";for=1.2.3.4'), options)).toBe("1.2.3.4");
    expect(clientIp(request('host="a\\",for=6.6.6.6";for=1.2.3.4'), options)).toBe("1.2.3.4");
    expect(clientIp(request('for="1\\.2.3.4"'), options)).toBe("1.2.3.4");
    expect(clientIp(request('by="x, for=6.6.6.6\\"x";for=1.2.3.4'), options)).toBe("1.2.3.4");
    expect(clientIp(request("for=1.2.3.4; proto=https ;; by=3.3.3.3"), options)).toBe("1.2.3.4");
    expect(clientIp(request('for="[2001:DB8::1%25eth0]:4711"'), options)).toBe("2001:db8::/56");
    expect(clientIp(request("proto=https"), options)).toBe("10.0.0.1");
    expect(clientIp(request("for=_gazonk"), options)).toBe("10.0.0.1");
  });

  test("a platform's header is read only where the options name it, and only from trusted networks where they are listed", () => {
    const request = { address: "10.0.0.1", headers: new Headers({ "cf-connecting-ip": "1.2.3.4" }) };
    expect(clientIp(request)).toBe("10.0.0.1");
    expect(clientIp(request, { header: "CF-Connecting-IP" })).toBe("1.2.3.4");
    expect(clientIp(request, { header: "cf-connecting-ip", trust: ["10.0.0.1"] })).toBe("1.2.3.4");
    expect(clientIp(request, { header: "cf-connecting-ip", trust: ["10.0.0.2"] })).toBe("10.0.0.1");
    expect(
      clientIp({ ...request, headers: { "cf-connecting-ip": "1.2.3.4, 6.6.6.6" } }, { header: "cf-connecting-ip" }),
    ).toBe("10.0.0.1");
  });

  test.each(["cf-connecting-ip", "x-forwarded-for", "forwarded"])("with no proxy trusted %s is not read", (header) => {
    const headers = { [header]: header === "forwarded" ? "for=6.6.6.6" : "6.6.6.6" };
    const keys = [0, []].map((trust) => clientIp({ address: "192.0.2.1", headers }, { trust, header }));
    expect(keys).toEqual(["192.0.2.1", "192.0.2.1"]);
  });

  test("without an address there is one key, which is no address's", () => {
    expect(clientIp({})).toBe("unknown");
    expect(clientIp({ socket: null, headers: { "x-forwarded-for": "1.2.3.4" } })).toBe("unknown");
    expect(clientIp({ socket: {}, headers: { "x-forwarded-for": "1.2.3.4" } }, { trust: ["10.0.0.0/8"] })).toBe(
      "unknown",
    );
    expect(clientIp({ socket: {}, headers: { "x-forwarded-for": "1.2.3.4" } }, { trust: 1 })).toBe("1.2.3.4");
  });

  test("header names and values that are prototypes' are ordinary strings", () => {
    expect(clientIp(from("__proto__, constructor"), { trust: 2 })).toBe("10.0.0.1");
    expect(clientIp({ address: "10.0.0.1", headers: {} }, { header: "constructor" })).toBe("10.0.0.1");
    expect(clientIp({ address: "10.0.0.1", headers: {} }, { header: "__proto__" })).toBe("10.0.0.1");
  });

  test("a header of 1 MB is read from the right only as far as it is trusted", () => {
    const long = `${"6.6.6.6,".repeat(130_000)}1.2.3.4`;
    expect(clientIp(from(long), { trust: 1 })).toBe("1.2.3.4");
    for (const forged of [
      '"'.repeat(2 ** 20),
      '\\"'.repeat(2 ** 19),
      "\\".repeat(2 ** 20),
      ",".repeat(2 ** 20),
      "for=;".repeat(2 ** 18),
    ]) {
      const request = { address: "10.0.0.1", headers: { forwarded: `${forged},for=1.2.3.4` } };
      expect(clientIp(request, { trust: 1, header: "forwarded" })).toBe("1.2.3.4");
      expect(clientIp(request, { trust: ["0.0.0.0/0"], header: "forwarded" })).toMatch(/^(10\.0\.0\.1|1\.2\.3\.4)$/);
    }
  });

  test.each([
    [
      { trust: -1 },
      "`trust` must be a number of proxies, an integer from 0 to 100, or an array of their networks; got -1",
    ],
    [
      { header: "forwarded" },
      "`trust` must be a number of proxies or their networks if forwarded is read; got undefined",
    ],
    [{ header: "a b" }, '`header` must be a header\'s name, such as x-forwarded-for; got "a b"'],
    [{ prefix: 16 }, "`prefix` must be bits, an integer from 32 to 128; got 16"],
    [
      { trsut: 1 } as object,
      "`trsut` must be absent: an address has prefix, trust, header; got 1; did you mean `trust`?",
    ],
  ])("%j is a mistake, whatever the request", (options, message) => {
    for (const request of [{}, { address: "10.0.0.1" }]) expect(() => clientIp(request, options)).toThrow(message);
  });
});

describe("keys", () => {
  // Lone surrogates, delimiters, NUL, both normal forms, digits and colons.
  const part = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("\ud800", "\udc00", "\0", ":", "1:", "0", "12", "é", "é", "a"), { maxLength: 5 })
      .map((s) => s.join("")),
  );
  const tuple = fc.array(part, { minLength: 1, maxLength: 4 });
  test("tupleKey writes the length of each part before it", () => {
    expect(tupleKey("acme", "user 7")).toBe("4:acme6:user 7");
    expect(tupleKey("a:b", "c")).not.toBe(tupleKey("a", "b:c"));
    expect(tupleKey("")).not.toBe(tupleKey("", ""));
    // Written to look like the parts of another, if a length of 10 were cut to its last digit.
    expect(tupleKey("1:a1:b2:cd")).not.toBe(tupleKey("", "a", "b", "cd"));
  });

  test("the parts of a tuple's key can be read from it, so no two tuples have one key", () => {
    const parts = (key: string): string[] => {
      const found: string[] = [];
      for (let at = 0; at < key.length; ) {
        const colon = key.indexOf(":", at);
        const end = colon + 1 + Number(key.slice(at, colon));
        found.push(key.slice(colon + 1, end));
        at = end;
      }
      return found;
    };
    fc.assert(
      fc.property(tuple, (strings) => {
        fc.pre(strings.join("").length < 300); // beyond, it is a hash
        expect(parts(tupleKey(...(strings as [string])))).toEqual(strings);
      }),
    );
  });

  test("only strings are parts", () => {
    expect(() => tupleKey("a", 7 as never)).toThrow("`parts[1]` must be a string; got 7");
    expect(() => tupleKey(...([] as never as [string]))).toThrow("`parts` must be at least one string; got none");
    expect(() => boundedKey(undefined as never)).toThrow("`key` must be a string; got undefined");
  });

  test("overlong keys are hashed, and every limiter takes them; others stay as they are", () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
    for (const character of ["x", "é", "€", "\ud800"]) {
      for (const length of [0, 1, 341, 342, 1023, 1024, 1025, character === "x" ? 2 ** 20 : 5000]) {
        const key = character.repeat(length);
        const bounded = boundedKey(key);
        if (length > 0) expect(limits.limit("api", { key: bounded, count: 0 }).ok).toBe(true);
        const bytes = generalizedUtf8(key).length;
        if (bytes <= 1024) expect(bounded).toBe(key);
        else expect(bounded).toBe(`sha256:${createHash("sha256").update(generalizedUtf8(key)).digest("hex")}`);
      }
    }
  });

  test("a key with the prefix of a hash is hashed, so it never equals the key of another client", () => {
    const victim = boundedKey("v".repeat(2000));
    expect(boundedKey(victim)).not.toBe(victim);
  });

  test("the hash is SHA-256", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(sha256(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
      }),
      { numRuns: 500 },
    );
  });
});
