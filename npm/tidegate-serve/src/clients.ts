/** The clients of the stores, which the package includes. */
import type { Clients } from "tidegate/cli";

export const clients: Clients = {
  async redis(url) {
    const { Redis } = await import("ioredis");
    const client = new Redis(url, { connectionName: "tidegate-serve" });
    // The limiter reports what fails, once and with its cause.
    client.on("error", () => {});
    return {
      client,
      close: async () => {
        if (client.status === "ready") await client.quit().catch(() => {});
        client.disconnect();
      },
    };
  },
  async postgres(url) {
    const { default: pg } = await import("pg");
    const client = new pg.Pool({ connectionString: url, application_name: "tidegate-serve" });
    client.on("error", () => {});
    return { client, close: () => client.end() };
  },
};
