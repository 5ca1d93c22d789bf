// The playground's side of the server: one limit for each open page, up to a fixed number of pages.
import { InputError, isInputError } from "tidegate";
import { answer } from "./answer.mjs";
import { limits } from "./limits.mjs";
import { Sandbox } from "./sandbox.mjs";

/** Above this number the least recent visitor is removed. */
const MOST_VISITORS = 500;
const ID = /^[\w-]{1,64}$/;

/** @type {Map<string, Sandbox>} In the order of their last visit. */
const visitors = new Map();

const seen = (id, sandbox) => {
  visitors.delete(id);
  visitors.set(id, sandbox);
  for (const oldest of visitors.keys()) {
    if (visitors.size <= MOST_VISITORS) break;
    visitors.delete(oldest);
  }
};

/** The numbers of a decision, to compare them. */
const numbers = ({ ok, value, ts, remaining, limit, retryAt, retryAfter, resetAt, reserved, reason, now }) => {
  return { ok, value, ts, remaining, limit, retryAt, retryAfter, resetAt, reserved, reason, now };
};

function idIn(url) {
  const id = url.searchParams.get("id");
  if (id === null || !ID.test(id)) throw new InputError("id", "1 to 64 characters of A-Z a-z 0-9 _ -", id);
  return id;
}

/** A JSON object with these fields only. */
function fields(body, ...names) {
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new InputError("body", "an object", body);
  for (const name of Object.keys(body)) {
    if (!names.includes(name)) throw new InputError(name, `absent: this takes ${names.join(", ")}`, body[name]);
  }
  return body;
}

/** Runs a handler for the sandbox of the request's id; invalid input is a response with the reason. */
function within(run) {
  return async (url, key, body) => {
    try {
      const id = idIn(url);
      return await run({ id, sandbox: visitors.get(id), key, body });
    } catch (error) {
      if (!isInputError(error)) throw error;
      return { status: 400, headers: {}, body: { error: error.message, field: error.field } };
    }
  };
}

const UNKNOWN = { status: 404, headers: {}, body: { error: "there is no sandbox of this id: PUT a policy first" } };

/** `clock` is the server's clock, whatever clock a call had: the page measures its own offset. */
const state = (sandbox) => ({ config: sandbox.config, rows: sandbox.rows(), clock: Date.now() });

export const sandboxRoutes = {
  /** The body is a policy for `defineLimits`. An existing sandbox keeps its state. */
  "PUT /api/sandbox": within(async ({ id, sandbox, key, body }) => {
    if (sandbox === undefined) {
      const opened = new Sandbox(body);
      const decision = limits.limit("sandbox", { key });
      if (!decision.ok) return answer(decision, {});
      seen(id, opened);
      return { status: 201, headers: {}, body: state(opened) };
    }
    seen(id, sandbox);
    await sandbox.define(body);
    return { status: 200, headers: {}, body: state(sandbox) };
  }),

  /** The body is `{ op, count, reserve, now, random }`, each with a default. The response is the decision. */
  "POST /api/sandbox": within(async ({ id, sandbox, body }) => {
    const given = fields(body, "op", "count", "reserve", "now", "random");
    const { op = "limit", count = 1, reserve = false, now = Date.now(), random = Math.random() } = given;
    if (sandbox === undefined) return UNKNOWN;
    seen(id, sandbox);
    const decision = await sandbox.decide({ op, count, reserve, now, random });
    const result = { decision: numbers(decision), rows: sandbox.rows(), clock: Date.now() };
    const response = answer(decision, {}, decision.ok && decision.reserved ? 202 : 200);
    return { ...response, body: { ...response.body, ...result } };
  }),

  "GET /api/sandbox": within(async ({ id, sandbox }) => {
    if (sandbox === undefined) return UNKNOWN;
    const value = await sandbox.value(Date.now());
    return { status: 200, headers: {}, body: { ...state(sandbox), ...value, id } };
  }),

  "DELETE /api/sandbox": within(async ({ sandbox }) => {
    await sandbox?.reset();
    return { status: 200, headers: {}, body: { rows: sandbox?.rows() ?? [], clock: Date.now() } };
  }),
};
