// Measures the outbox while every send fails: `node bench/by-hand-outbox.ts [chats...]`. Prints how long it
// takes until each chat was tried once (at most 20 s), the processor time for that, and how long other work
// waited.

import { setImmediate } from "node:timers/promises";
import { createBus } from "../src/engine/bus.ts";
import { createCommit } from "../src/engine/unit.ts";
import { insertDelivery } from "../src/store/queries/channels/deliveries.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { realWorld } from "../src/world.ts";
import { openOutbox } from "../tests/kit/engine/outbox.ts";
import { inFolder } from "./in-folder.ts";

const LIMIT_MS = 20_000;
const SIZES = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [50, 500, 2_000];

async function measure(dir: string, chats: number): Promise<void> {
  const world = realWorld({ level: "silent" });
  const store = await openSqlite({ dir, durability: "normal", log: world.log });
  const commit = createCommit(store, world, createBus(world.log));
  const tried = new Set<string>();
  const all = Promise.withResolvers<void>();
  const channel = {
    id: "pigeon",
    deduplicates: true,
    async deliver({ deliveryId }: { deliveryId: string }) {
      await setImmediate();
      tried.add(deliveryId);
      if (tried.size === chats) all.resolve();
      return { kind: "retry" as const, error: "the platform answered 500" };
    },
  };
  await commit(async ({ tx, now }) => {
    for (let at = 0; at < chats; at += 1) {
      const row = { id: `d${at}`, sessionKey: "agent:main:main", kind: "send", text: "hello" } as const;
      const route = { channel: "pigeon", to: `chat-${at}` };
      await insertDelivery(tx, { ...row, route, state: "pending", createdAt: now });
    }
  });
  const channels = new Map([["pigeon", channel]]);
  const worker = openOutbox({ db: store.db, commit, channels, world, owner: "bench", of: "texts" });
  let [waitedMs, lastAt] = [0, performance.now()];
  const other = setInterval(() => {
    waitedMs = Math.max(waitedMs, performance.now() - lastAt);
    lastAt = performance.now();
  }, 1);
  const [began, used] = [performance.now(), process.cpuUsage()];
  await worker.start();
  const limit = setTimeout(all.resolve, LIMIT_MS);
  await all.promise;
  clearTimeout(limit);
  clearInterval(other);
  const cpu = process.cpuUsage(used);
  console.log(
    `${chats} chats: ${tried.size} tried in ${Math.round(performance.now() - began)} ms, ` +
      `${Math.round((cpu.user + cpu.system) / 1_000)} ms of processor, ` +
      `other work waited up to ${Math.round(Math.max(waitedMs, performance.now() - lastAt))} ms`,
  );
  await worker.stop();
  await store.close();
}

for (const chats of SIZES) await inFolder((dir) => measure(dir, chats));
