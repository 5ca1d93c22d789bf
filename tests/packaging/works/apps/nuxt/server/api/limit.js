import { redis } from "tidegate/redis";
import { answers } from "../../answers.js";

export default defineEventHandler(() => {
  if (typeof redis !== "function") throw new Error("tidegate/redis is not loaded");
  return answers();
});
