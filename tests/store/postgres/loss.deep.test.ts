// Stops, kills and restarts a server while a store is open.

import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../../src/store/sql.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { type PostgresServer, startPostgres } from "../../kit/store/postgres-server.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { userMessage } from "../samples.ts";

let server: PostgresServer;
let store: Store;
const world = fakeWorld({ clock: "real" });

beforeAll(async () => {
  server = await startPostgres();
  store = await openPostgres({ url: server.url, world });
});
afterAll(async () => {
  await store.close();
  await server.end();
});

interface Load {
  /** Ids of rows that were reported as stored. */
  readonly stored: string[];
  readonly failed: string[];
  /** Exceptions that are not problems of the store. */
  readonly surprises: unknown[];
  stop(): Promise<void>;
}

/** Starts concurrent writes and reads, until `stop` is called. */
function load(name: string): Load {
  const [stored, failed, surprises]: [string[], string[], unknown[]] = [[], [], []];
  let going = true;
  const note = (error: unknown): void => {
    if (!(error instanceof StoreProblem) || error.problem !== "unreachable") surprises.push(error);
  };
  const write = async (lane: number): Promise<void> => {
    for (let n = 0; going; n += 1) {
      const id = `${name}-${lane}-${n}`;
      try {
        await store.transaction(async (tx) => {
          await appendEntry(
            tx,
            { sessionKey: "k", sessionId: name, entry: userMessage(id, `word ${id}`) },
            plainRedactor,
          );
          await tx.selectFrom("messages").select("seq").where("id", "=", id).execute();
        });
        stored.push(id);
      } catch (error) {
        failed.push(id);
        note(error);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  };
  const read = async (): Promise<void> => {
    while (going) {
      await store.db.selectFrom("chains").selectAll().execute().catch(note);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const lanes = [...Array.from({ length: 12 }, (_, lane) => write(lane)), read(), read()];
  return {
    stored,
    failed,
    surprises,
    stop: async () => {
      going = false;
      await Promise.all(lanes);
    },
  };
}

const reached = (list: readonly unknown[], count: number): Promise<true> => until(() => list.length >= count);

test.each(["stopped", "killed"] as const)(
  "if the server is %s under load, each transaction is stored or fails as unreachable, and the store works when the server is back",
  async (how) => {
    world.logged.length = 0;
    const gap = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<string>();
    const stop = await store.shared?.listen(heard.resolve, gap.resolve);
    const work = load(how);
    await reached(work.stored, 40);
    await (how === "stopped" ? server.stop() : server.kill());
    await reached(work.failed, 5);
    await server.start();
    const before = work.stored.length;
    await reached(work.stored, before + 40);
    await work.stop();
    expect(work.surprises).toEqual([]);
    const rows = await store.db.selectFrom("messages").select("id").where("session_id", "=", how).execute();
    const there = new Set(rows.map((row) => row.id));
    expect(work.stored.filter((id) => !there.has(id))).toEqual([]);
    // If the answer to a commit was lost, its row may be stored without confirmation. Each writer has at most
    // one of these.
    expect(there.size - work.stored.length).toBeLessThanOrEqual(10);
    await gap.promise;
    const other = await openPostgres({ url: server.url, world: fakeWorld({ seed: 2, clock: "real" }) });
    await other.shared?.notify(["after"]);
    expect(await heard.promise).toBe("after");
    await other.close();
    await stop?.();
    await store.shared?.syncClock();
    expect(world.logged.filter(({ level }) => level === "error")).toEqual([]);
    expect(world.logged.some(({ text }) => text === "the store is reachable again")).toBe(true);
  },
);

test("a server that becomes read-only counts as unreachable, and the store opens a new connection", async () => {
  const single = await openPostgres({ url: server.url, world, writersMax: 1 });
  /** Returns the id of the connection that wrote, or the error. */
  const put = (id: string) =>
    single
      .transaction(async (tx) => {
        await tx.insertInto("chains").values({ chain_id: id, runs: 1 }).execute();
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
        return rows[0]?.pid;
      })
      .catch((error: unknown) => error);
  const readOnly = async (value: "on" | "off"): Promise<void> => {
    await runSql(server.url, `alter system set default_transaction_read_only = ${value}`);
    await runSql(server.url, "select pg_reload_conf()");
  };
  const eventually = async (name: string, kind: string): Promise<unknown> => {
    for (let n = 0; ; n += 1) {
      const outcome = await put(`${name}-${n}`);
      if (typeof outcome === kind) return outcome;
    }
  };
  const before = await put("before");
  await readOnly("on");
  const refused = await eventually("on", "object");
  expect(refused).toMatchObject({ problem: "unreachable", message: expect.stringContaining("read-only") });
  await readOnly("off");
  const after = await eventually("off", "number");
  expect(after).not.toBe(before);
  await single.close();
});
