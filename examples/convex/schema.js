import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";
import { stateTable } from "tidegate/convex";

export default defineSchema({
  tidegate: stateTable(defineTable, v),
  messages: defineTable({ user: v.string(), text: v.string() }),
});
