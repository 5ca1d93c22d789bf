// The contenders, in the order of the tables. Each file exports `create({ capacity, rate, periodMs, maxKeys })`, which returns
// `{ decide(key), promised?, version?, kind }`. `decide` reads the clock itself and returns `{ ok, remaining, resetAt, … }`,
// or a promise of it if `promised` is set (then the loop awaits it, as the peer's users must).

/** Ours first, then plain JavaScript, then the peers. `floor` decides nothing: it measures the loop itself. */
export const CONTENDERS = [
  { id: "tidegate", title: "tidegate (wasm)" },
  { id: "tidegate-shared", title: "tidegate shared() (native)" },
  { id: "plain-slots", title: "plain JS, Map + Float64Array" },
  { id: "plain-objects", title: "plain JS, Map of objects" },
  { id: "convex", title: "@convex-dev/rate-limiter on a Map" },
  { id: "hono", title: "hono-rate-limiter" },
  { id: "fastify", title: "@fastify/rate-limit" },
  { id: "express", title: "express-rate-limit" },
  { id: "flexible", title: "rate-limiter-flexible" },
  { id: "floor", title: "(key and clock only)" },
];

export async function load(id, options) {
  const { create } = await import(`./contenders/${id}.mjs`);
  return create({ rate: options.capacity, ...options });
}
