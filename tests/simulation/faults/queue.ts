/** A locked table: calls that a process sends after their deadline. PGlite runs the store's SQL. */
import { PGlite } from "@electric-sql/pglite";
import { type Decision, defineLimits } from "tidegate";
import { migrate, postgres } from "tidegate/postgres";
import { Life } from "../engine/clock.ts";
import { exponential, logNormal, stream } from "../engine/random.ts";
import { EPOCH_MS, MS, SECOND, World } from "../engine/world.ts";

export interface Queueing {
  readonly seed: number;
  /** Requests per second, each on a key of its own; the figures are of those with the default timeout. */
  readonly perSecond: number;
  /** ms for which the table is locked. */
  readonly locked: number;
}

export interface Queued {
  readonly calls: number;
  readonly granted: number;
  /** Calls that were decided without the store. */
  readonly degraded: number;
  /** Calls in statements that were sent after their deadline. */
  readonly sentLate: number;
  /** Tokens that the database took, and those of calls whose statement was sent in time. */
  readonly taken: number;
  readonly sentInTime: number;
}

/** ms: the default of `timeout`. */
const TIMEOUT = 250;
/** One call in so many waits for longer than the lock. Statements with them stay out, so that others expire in the queue. */
const PATIENT_EVERY = 20;
const PATIENT = 2_000;
/** An identity in the values of a statement. */
const IDENTITY = /limit:(k\d{6})/g;

export async function queueing({ seed, perSecond, locked }: Queueing): Promise<Queued> {
  const database = await PGlite.create();
  await migrate(database);
  const world = new World(seed);
  const network = stream(seed, "network");
  const demand = stream(seed, "demand");
  const life = new Life();
  const called = new Map<string, number>();
  const sent = new Map<string, boolean>();
  const lock = { from: 100 * MS, until: (100 + locked) * MS };

  // A pool: statements that wait for the lock run when it is released.
  const client = {
    query(text: string, values: unknown[]): Promise<unknown> {
      for (const [, key = ""] of JSON.stringify(values).matchAll(IDENTITY)) {
        sent.set(key, (sent.get(key) ?? false) || world.now - (called.get(key) ?? 0) <= TIMEOUT * MS);
      }
      const hop = (): number => Math.floor(logNormal(network, 250, 0.5));
      const arrives = world.now + hop();
      const at = arrives >= lock.from && arrives < lock.until ? lock.until : arrives;
      return new Promise((resolve, reject) => {
        world.at(at, undefined, async () => {
          try {
            const answer = await database.query(text, values);
            world.after(hop(), life, () => resolve(answer));
          } catch (error) {
            world.after(hop(), life, () => reject(error));
          }
        });
      });
    },
  };

  const counts = { calls: 0, granted: 0, degraded: 0 };
  const answered = (decision: Decision): void => {
    if (decision.degraded === true) counts.degraded++;
    else if (decision.ok) counts.granted++;
  };
  const limit = { kind: "token bucket", rate: 1, period: 3_600_000 } as const;
  const now = (): number => Math.floor(EPOCH_MS + world.now / MS);
  const configs = { limit, patient: { ...limit, timeout: PATIENT } };
  const limits = world.within(life, () => defineLimits(configs, { store: postgres(client), now, log: false }));
  let arrivals = 0;
  for (let at = 0; at < lock.until + SECOND / 2; at += exponential(demand, perSecond / SECOND)) {
    const isPatient = ++arrivals % PATIENT_EVERY === 0;
    const key = `k${String(isPatient ? arrivals : counts.calls++).padStart(6, "0")}`;
    world.at(Math.floor(at), life, () => {
      if (isPatient) return void limits.limit("patient", { key });
      called.set(key, world.now);
      void limits.limit("limit", { key }).then(answered);
    });
  }
  await world.run();
  const { rows } = await database.query<{ taken: number }>(
    "SELECT count(*)::int AS taken FROM tidegate.states WHERE substr(id, 1, 6) = 'limit:'",
  );
  await database.close();
  const inTime = [...sent.values()].filter((whether) => whether).length;
  return { ...counts, sentLate: sent.size - inTime, taken: rows[0]?.taken ?? 0, sentInTime: inTime };
}
