// The vendor's quota, and the limit with which the fleet stays below it.
import { HOUR } from "tidegate";

/** The vendor's rule: so many requests in any such time. The environment can shorten it for a quick run. */
export const QUOTA = Number(process.env.QUOTA ?? 5000);
export const PERIOD = Number(process.env.PERIOD_MS ?? HOUR);

/**
 * A bucket grants at most its capacity plus the refill of the time: together no more than the vendor allows. A fiftieth may go
 * immediately, after a pause.
 */
const burst = Math.max(1, Math.floor(QUOTA / 50));
export const policy = { kind: "token bucket", rate: QUOTA - burst, period: PERIOD, capacity: burst };
