import { TidegateObject } from "tidegate/durable-object";

export { TidegateObject };

/** Waits for something of its own before each call: those that wait for it at one time go on together. */
export class Late extends TidegateObject {
  #loading: Promise<void> | undefined;

  override async handle(request: Parameters<TidegateObject["handle"]>[0]): ReturnType<TidegateObject["handle"]> {
    await this.#load();
    return super.handle(request);
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
