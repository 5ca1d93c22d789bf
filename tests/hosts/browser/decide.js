// Writes the package's decisions, or its error, into the page.
import { defineLimits, MINUTE } from "tidegate";

try {
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  document.body.dataset.result = JSON.stringify([1, 2, 3].map(() => limits.limit("send").ok));
} catch (error) {
  document.body.dataset.result = `${error.name}: ${error.message}`;
}
