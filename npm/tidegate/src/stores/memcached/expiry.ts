/** When the server drops a state, in the protocol's seconds: 0 never; up to 30 days a wait; above, a Unix time. */

const WAIT_MOST = 30 * 24 * 3600;
/** The server reads a number of 32 bits; what would be full later than that (2038) goes when there is no room. */
const TIME_MOST = 2 ** 31 - 1;
/** Seconds that a full state is kept on: by then it is full by the clocks of other processes too. */
const SLACK = 60;
/** The same where it is the server's own clock that must have reached a time. */
const SLACK_OF_TIMES = 3600;

/** `fullAt` and `now` are ms by one clock; `wall` is what time it is, for the server to compare with. */
export function exptimeOf(fullAt: number, now: number, wall: number): number {
  const wait = Math.ceil(Math.max(fullAt - now, 0) / 1000) + SLACK;
  if (wait <= WAIT_MOST) return wait;
  const time = Math.ceil(wall / 1000) + wait + SLACK_OF_TIMES;
  return time <= TIME_MOST ? time : 0;
}
