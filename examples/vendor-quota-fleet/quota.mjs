// What the vendor allows, and how the fleet stays below: in one place.
import { HOUR } from "tidegate";

/** The vendor's rule: so many requests in any such time. The environment makes it smaller, to see it work at once. */
export const QUOTA = Number(process.env.QUOTA ?? 5000);
export const PERIOD = Number(process.env.PERIOD_MS ?? HOUR);

/**
 * A bucket grants at most its capacity and what comes in the time: together no more than the vendor allows. A fiftieth may go at
 * once, after a pause.
 */
const burst = Math.max(1, Math.floor(QUOTA / 50));
export const policy = { kind: "token bucket", rate: QUOTA - burst, period: PERIOD, capacity: burst };
