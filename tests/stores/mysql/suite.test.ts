/** The contract of a store on a real MariaDB, through every client. */
import type { RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, describe, test } from "vitest";
import { generalizedUtf8 } from "../../../npm/tidegate/src/engine/utf8.ts";
import { decodeText } from "../../../npm/tidegate/src/limit/codec.ts";
import { mysql } from "tidegate/mysql";
import { storeSuite } from "tidegate/testing";
import { few } from "../vectors.ts";
import { clients, type Open } from "./clients.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();

/** Each test has a table of its own. */
let tests = 0;

describe.each(["mysql2/promise", "mariadb"] as const)("%s", (name) => {
  let open: Open;
  beforeAll(() => {
    open = clients[name](fixture.server);
  });
  afterAll(() => open?.close());

  storeSuite({
    test,
    describe,
    vectors: few,
    create: () => mysql(open.client, { table: `t${++tests}` }),
    stored: () => async (identity) => {
      const id = Buffer.from(generalizedUtf8(identity));
      const [rows] = await fixture.admin.query<RowDataPacket[]>(`SELECT state FROM t${tests} WHERE id = ?`, [id]);
      const state: string | null = rows[0]?.["state"] ?? null;
      return state === null ? null : decodeText(state);
    },
    corrupt: () => (identity) => fixture.admin.query(`UPDATE t${tests} SET state = 'garbage' WHERE id = ?`, [identity]),
  });
});
