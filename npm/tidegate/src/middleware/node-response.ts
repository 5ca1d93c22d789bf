import { PROBLEM_JSON } from "../http/problem.ts";
import type { Admission, Denial } from "./gate.ts";
import type { Incoming } from "./client.ts";

/** A request of `node:http`, by shape. */
export interface NodeRequest extends Incoming {
  readonly method?: string | undefined;
}

/** A response of `node:http`, by shape. */
export interface NodeResponse {
  statusCode: number;
  readonly writableFinished: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: string): unknown;
  end(body?: string): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** Settles when the response is sent, or will never be. */
export function settleAfter<R>(admission: Admission<R>, response: NodeResponse): void {
  if (!admission.settles) return;
  response.once("close", () => {
    void admission.settle({ status: response.statusCode, aborted: !response.writableFinished });
  });
}

/** Answers a denied request. The fields are there already. */
export function refuse(denial: Denial, response: NodeResponse): void {
  response.statusCode = denial.status;
  response.setHeader("Content-Type", PROBLEM_JSON);
  response.end(JSON.stringify(denial.problem));
}
