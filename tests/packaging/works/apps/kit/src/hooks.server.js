import { building } from "$app/environment";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";

const limits = defineLimits({ all: { kind: "token bucket", rate: 300, period: MINUTE } });
const limited = rateLimit(limits, { name: "all" }, (_request, _event, next) => next());

export const handle = ({ event, resolve }) =>
  building || event.isSubRequest ? resolve(event) : limited(event.request, event, async () => resolve(event));
