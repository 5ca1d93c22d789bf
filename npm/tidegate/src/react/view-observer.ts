/** Renders a component when what it shows changes, by a timer. */
import type { RemoteLimits, ServerState } from "./remote.ts";
import { nextChange, type Shown, type View, viewAt } from "./view.ts";

/** A component's limit and request. */
interface Watched extends Shown {
  readonly from: RemoteLimits;
  readonly name: string;
  readonly initial: ServerState | undefined;
}

/** What one component shows of one limit. It waits for its next change only while the component is mounted, so never on a server. */
export class ViewObserver {
  readonly #watched: Watched;
  /** The fields that were read: a change of any other is none. */
  readonly #fields = new Set<keyof View>();
  #known = 0;
  /** The view while a server renders and a browser hydrates; independent of clocks. */
  readonly #first: View;
  #view: View;
  #changed: (() => void) | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
    const { from, name, initial } = watched;
    this.#first = viewAt(initial?.now ?? 0, initial, watched, undefined, (at) => at);
    this.#view = from.state(name) === undefined ? this.#first : this.#look();
  }

  readonly view = (): View => this.#view;
  readonly first = (): View => this.#first;

  /** A field of what was shown, which counts as shown from now on. */
  read<F extends keyof View>(view: View, field: F): View[F] {
    if (!this.#fields.has(field)) {
      this.#fields.add(field);
      if (this.#changed !== undefined) {
        // It may have changed since the render, as no change of it rendered.
        Object.assign(view, { [field]: this.#look()[field] });
        // A child that was given the fields may render alone, and no effect of the hook follows.
        void Promise.resolve().then(() => this.rendered());
      }
    }
    return view[field];
  }

  readonly subscribe = (changed: () => void): (() => void) => {
    const { from, name, initial } = this.#watched;
    this.#changed = changed;
    this.#learn(initial);
    const unwatch = from.watch(name, this.#update);
    this.#update();
    return () => {
      unwatch();
      this.#changed = undefined;
    };
  };

  /** After a render, with the state that a server rendered. If it read fields that no render before it did, the timer is for these too. */
  rendered(initial?: ServerState): void {
    this.#learn(initial);
    if (this.#fields.size !== this.#known) this.#update();
  }

  /** Not if newer state arrived: one that is older by minutes would count as a server's whose clock was set back. */
  #learn(initial: ServerState | undefined): void {
    const { from, name } = this.#watched;
    if (initial !== undefined && initial.now > (from.state(name)?.now ?? -1)) from.learn(name, initial);
  }

  #look(): View {
    const { from, name, initial } = this.#watched;
    const state = from.state(name) ?? initial;
    return viewAt(from.now(), state, this.#watched, from.error(name), (at) => from.here(at));
  }

  readonly #update = (): void => {
    const view = this.#look();
    for (const field of this.#fields) {
      if (Object.is(view[field], this.#view[field])) continue;
      this.#view = view;
      this.#changed?.();
      break;
    }
    this.#known = this.#fields.size;
    const { from, name } = this.#watched;
    from.wake(name, this.#update, nextChange(from.now(), from.state(name), this.#watched, this.#fields));
  };
}
