import { TidegateObject } from "tidegate/durable-object";

export { TidegateObject };

/** Waits for something of its own before each call: those that wait for it at one time go on together. */
export class Late extends TidegateObject {
  #loading: Promise<void> | undefined;

  override async ask(request: Parameters<TidegateObject["ask"]>[0]): ReturnType<TidegateObject["ask"]> {
    await this.#load();
    return super.ask(request);
  }

  override async alarm(): Promise<void> {
    await this.#load();
    return super.alarm();
  }

  #load(): Promise<void> {
    this.#loading ??= scheduler.wait(50).then(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }
}

/** The same on storage that is not SQLite. */
export class LateClassic extends Late {}

export default { fetch: async () => new Response("hello") } satisfies ExportedHandler<Cloudflare.Env>;
