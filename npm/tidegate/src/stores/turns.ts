/**
 * One call at a time on a key, within this process: others wait their turn instead of running into conflicts. A call
 * on several keys waits for all of them, and is waited for on all; every call joins its queues at once, so none waits
 * in a circle.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(ids: readonly string[], body: () => Promise<T>): Promise<T> {
    const before = ids.map((id) => this.#last.get(id)).filter((turn) => turn !== undefined);
    const answer = before.length === 0 ? body() : Promise.all(before).then(body);
    const turn = answer.then(ignore, ignore);
    for (const id of ids) this.#last.set(id, turn);
    void turn.then(() => {
      for (const id of ids) if (this.#last.get(id) === turn) this.#last.delete(id);
    });
    return answer;
  }
}

const ignore = (): void => {};
