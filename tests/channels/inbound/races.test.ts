// Two processes with one PostgreSQL database receive messages of one person at the same time. No message is
// lost.

import { expect, test } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { INBOUND_DEADLINE } from "../../../src/flows/delivery/inbound-files.ts";
import { insertInbound } from "../../../src/store/queries/channels/inbound.ts";
import { setDeadline } from "../../../src/store/queries/deadlines.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { said } from "../../kit/platforms/fake-channel.ts";
import { openPostgresStore, runSql } from "../../kit/store/postgres.ts";
import { MAIN, open, slow } from "./kit.ts";

const LONG_MS = 600_000;

test("BU1: a command waits for a message that another process is storing, and both messages of the burst become one run", async () => {
  const { store, url, dispose } = await openPostgresStore();
  cleanup(dispose);
  const world = sharedWorld(store, quietWorld());
  const { app, receive } = await open({ disk: store, world }, slow({ debounceMs: LONG_MS }));
  await receive(said("one"));
  const first = await store.db.selectFrom("inbound").selectAll().executeTakeFirstOrThrow();
  const { burst_key: burstKey, body_json: body } = first;
  const kept = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  // A transaction of the other process. It waits before its commit.
  const other = store.transaction(async (tx) => {
    const id = { channel: "telegram", accountId: "default", chatId: "7", messageId: "second", edit: "" };
    const second = body.replace('"one"', '"two"');
    await insertInbound(tx, { ...id, burstKey, body: second, receivedAt: first.received_at + 1 });
    const dueAt = first.received_at + LONG_MS + 1;
    await setDeadline(tx, { kind: INBOUND_DEADLINE, key: burstKey, dueAt });
    kept.resolve();
    await end.promise;
  });
  await kept.promise;
  const command = receive(said("/whoami"));
  const waiting =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%deadlines%'";
  await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
  end.resolve();
  await Promise.all([other, command]);
  await app.quiet();
  const dates = await store.db
    .selectFrom("deadlines")
    .select("key")
    .where("kind", "=", INBOUND_DEADLINE)
    .execute();
  const pending = await store.db.selectFrom("inbound").selectAll().where("state", "=", "pending").execute();
  expect({ dates: dates.length, pending: pending.length }).toEqual({ dates: 0, pending: 0 });
  expect((await app.texts(MAIN))[0]).toBe("user: one\n\ntwo");
});
