// In your `convex` folder, beside schema.js: npx convex dev
import { mutationGeneric as mutation } from "convex/server";
import { v } from "convex/values";
import { defineLimits, SECOND } from "tidegate";
import { convex } from "tidegate/convex";

const configs = { send: { kind: "token bucket", rate: 1, period: 3 * SECOND, capacity: 3 } };

/** What is taken and what is written are one transaction: if it fails, neither has happened. */
export const send = mutation({
  args: { user: v.string(), text: v.string() },
  handler: async ({ db }, { user, text }) => {
    const limits = defineLimits(configs, { store: convex(db) });
    const { ok, retryAfter } = await limits.limit("send", { key: user });
    if (ok) await db.insert("messages", { user, text });
    return { ok, retryAfter };
  },
});
