/** A server that runs while a file's tests do. */
import { beforeAll } from "vitest";

/** Starts it before the tests of the file, or of the group, that calls this, and stops it after them. */
export function running<Server extends { stop(): Promise<void> }>(start: () => Promise<Server>): { server: Server } {
  const fixture = {} as { server: Server };
  beforeAll(async () => {
    fixture.server = await start();
    return () => fixture.server.stop();
  });
  return fixture;
}
