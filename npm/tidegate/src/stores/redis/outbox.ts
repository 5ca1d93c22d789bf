/** What leaves for the server: requests made in one turn of the event loop go out as one script call. */

import { readAnswer, readLate } from "./answer.ts";
import type { Link } from "./client.ts";
import { type Moment, ServerClock } from "../server-clock.ts";
import { corrupt, disagreement, failure } from "./failure.ts";
import { slotOf } from "./key.ts";
import { Line, type Owner } from "./line.ts";
import { Program } from "./program.ts";
import { SCRIPT, SCRIPT_SHA1 } from "./script.ts";
import { afterTurn } from "./turn.ts";
import type { Unit } from "./unit.ts";

/** Requests in one script call at the most (an all-or-nothing one may have more): so a server's other clients wait
 * for some 100 microseconds at the most, and this process reads one answer while the server works on the next. */
const MOST_REQUESTS = 64;

/** Masters whose clocks are kept; a cluster has fewer, but over years their addresses change. */
const MOST_CLOCKS = 1000;
const NOT_SENT = "its deadline passed before it was sent; nothing was taken";
const TOO_LATE = "it reached the server after its deadline; nothing was taken";

/** What else reads the answers. */
interface Watch {
  /** An answer has come, and no caller has seen it yet. The script call left at `sentAt` (`performance.now()`). */
  answered(program: Program, sentAt: number): void;
}

/** The requests that wait for the end of the turn, by slot and clock. */
export class Outbox {
  readonly #open = new Map<number | string, Program>();
  #scheduled = false;

  /** The clocks of a cluster's masters. */
  readonly #clocks = new Map<string, ServerClock>();
  readonly #link: Link;
  readonly #clock: ServerClock;
  readonly #watch: Watch;

  constructor(link: Link, clock: ServerClock, watch: Watch) {
    this.#link = link;
    this.#clock = clock;
    this.#watch = watch;
  }

  /** The program that a request on this key by this clock (absent: the server's) is to join. */
  program(place: string, now: number | undefined): Program {
    const slot = this.#link.cluster ? slotOf(this.#link.keyPrefix + place) : 0;
    const name = now === undefined ? slot : `${slot} ${now}`;
    const open = this.#open.get(name);
    if (open !== undefined) {
      if (open.size < MOST_REQUESTS) return open;
      this.#open.delete(name);
      void this.#send(open);
    }
    const program = new Program(now, slot);
    this.#open.set(name, program);
    if (!this.#scheduled) {
      this.#scheduled = true;
      afterTurn(this.#flush);
    }
    return program;
  }

  /** The line of one key in a program. */
  line(program: Program, place: string, of: Owner): Line {
    let line = program.lines.get(place);
    if (line === undefined) {
      line = new Line(place, of);
      program.lines.set(place, line);
    }
    return line;
  }

  #flush = (): void => {
    this.#scheduled = false;
    const programs = [...this.#open.values()];
    this.#open.clear();
    for (const program of programs) void this.#send(program);
  };

  async #send(program: Program): Promise<void> {
    try {
      const { calls, units } = program.expired(performance.now());
      for (const [line, call] of calls) call.reject(failure(call.spec.op, line.identity, new Error(NOT_SENT)));
      for (const unit of units) unit.reject(failure(opOf(unit), identityOf(unit), new Error(NOT_SENT)));
      if (program.size === 0) return;
      const { keys, args } = program.encode(this.#link.text);
      const { mark, reply } = await this.#inTime(program, keys, args);
      const answer = readAnswer(reply, keys.length);
      if (program.now === undefined) {
        this.#clock.learn(mark, answer.now);
        if (this.#link.cluster) this.#clockOf(program).learn(mark, answer.now);
      }
      for (const line of program.lines.values()) line.found(answer.before[line.index - 1] ?? null);
      const lines = [...program.lines.values()];
      // Where a key is of another type, the server may have counted what it did not write.
      const sound = !lines.some((line) => line.corrupt);
      const granted = replay(program, answer.now);
      if (sound && granted !== answer.granted) throw disagreement(answer.granted, granted);
      this.#watch.answered(program, mark.steady);
      settle(program, lines);
    } catch (error) {
      fail(program, error);
    }
  }

  /**
   * The reply of a script call that the server carried out before the last of its callers stopped waiting. A client may
   * hold a call back and send it when it is connected again, long after: so the script compares the deadline with the
   * server's clock, and does nothing where it has passed. Where that was a clock that is set differently, it is sent
   * again by what is known of the clock then.
   */
  async #inTime(program: Program, keys: string[], args: string[]): Promise<{ mark: Moment; reply: unknown }> {
    const { deadline } = program;
    const clock = this.#clockOf(program);
    for (;;) {
      const mark = clock.mark();
      const by =
        deadline === undefined ? "" : String(Math.ceil((clock.latest() ?? mark.wall) + deadline - mark.steady));
      const reply = await this.#run(keys, [...args, by]);
      const late = readLate(reply);
      if (late === undefined) return { mark, reply };
      clock.learn(mark, late);
      if (deadline === undefined || performance.now() >= deadline) throw new Error(TOO_LATE);
    }
  }

  /** Each master of a cluster has a clock of its own. */
  #clockOf({ slot }: Program): ServerClock {
    const master = this.#link.cluster ? this.#link.masterOf(slot) : undefined;
    if (master === undefined) return this.#clock;
    let clock = this.#clocks.get(master);
    if (clock === undefined) {
      if (this.#clocks.size >= MOST_CLOCKS) this.#clocks.clear();
      clock = new ServerClock();
      this.#clocks.set(master, clock);
    }
    return clock;
  }

  /** Only a script that was not there is sent again: whatever else failed may have been carried out. */
  async #run(keys: string[], args: string[]): Promise<unknown> {
    try {
      return await this.#link.run(false, SCRIPT_SHA1, keys, args);
    } catch (error) {
      if (!isMissingScript(error)) throw error;
      return await this.#link.run(true, SCRIPT, keys, args);
    }
  }
}

/**
 * The server's error code, which begins its message; clients may put their own words before it ("Command failed: ",
 * "Command 1 [ evalsha ] failed: ", "ReplyError: "). What a message quotes further on may be a caller's key.
 */
const MISSING_SCRIPT = /^(?:(?![A-Z]{2,} )[\w[\] ]*(?:failed|Error): )*NOSCRIPT(?: |$)/;

function isMissingScript(error: unknown): boolean {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  return typeof message === "string" && MISSING_SCRIPT.test(message);
}

function replay(program: Program, now: number): number {
  let granted = 0;
  for (const line of program.lines.values()) for (const call of line.calls) granted += call.replay(line, now);
  for (const unit of program.units) granted += unit.replay(now);
  return granted;
}

function settle(program: Program, lines: readonly Line[]): void {
  for (const line of lines) {
    for (const call of line.calls) {
      if (typeof call.before === "string") call.reject(corrupt(call.spec.op, line.identity, call.before));
      else call.resolve(call);
    }
  }
  for (const unit of program.units) {
    const { corrupt: line } = unit;
    if (line !== undefined) unit.reject(corrupt(opOf(unit), line.identity, String(line.before)));
    else unit.resolve(unit);
  }
}

const opOf = (unit: Unit): string => unit.members[0]?.whole.op ?? "take";
const identityOf = (unit: Unit): string =>
  unit.members.map(({ limit, lines: [first] }) => (first === undefined ? limit.name : first.identity)).join(", ");

function fail(program: Program, error: unknown): void {
  for (const line of program.lines.values())
    for (const call of line.calls) call.reject(failure(call.spec.op, line.identity, error));
  for (const unit of program.units) unit.reject(failure(opOf(unit), identityOf(unit), error));
}
