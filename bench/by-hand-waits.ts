// Measures the cost of one `sessions_send` that waits for its answer. Compares it with the same two runs
// without the send: `node bench/by-hand-waits.ts [sqlite|postgres] [messages in the caller's transcript]`.

import { randomUUID } from "node:crypto";
import type { WrittenMessage } from "../src/agent/model/model.ts";
import { type Entry, isCompaction, type Message } from "../src/core/shapes/message.ts";
import { sharedWorld } from "../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../src/store/postgres/postgres.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../src/store/queries/transcripts/append.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { realWorld, type World } from "../src/world.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";
import { inFolder } from "./in-folder.ts";
import { benchSettings, chatKey, instantEngine, instantModel, oneRun, sessionRow } from "./instant.ts";

const [kind = "sqlite", historyLength = "20"] = process.argv.slice(2);
const ROUNDS = 60;
const WARM = 15;
const [CALLER, ASKED] = [chatKey(1), chatKey(2)];

const userTextOf = (entries: readonly Entry[]): { text: string; results: number } => {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const at = messages.findLastIndex((message) => message.role === "user");
  return { text: JSON.stringify(messages[at]), results: messages.length - 1 - at };
};

/**
 * The model: answers the message `ask now` with the call to measure, and `look now` with a call that does not
 * wait.
 */
function answerTo(entries: readonly Entry[]): WrittenMessage["content"] {
  const { text, results } = userTextOf(entries);
  const called = (name: string, args: Record<string, unknown>): WrittenMessage["content"] => [
    { type: "toolCall", id: "c", name, arguments: args },
  ];
  if (results === 0 && text.includes("ask now"))
    return called("sessions_send", { sessionKey: ASKED, message: "hello", timeoutSeconds: 60 });
  if (results === 0 && text.includes("look now")) return called("agents_list", {});
  return [{ type: "text", text: "REPLY_SKIP" }];
}

async function prepared(store: Store, world: World): Promise<void> {
  await store.transaction(async (tx) => {
    for (const [at, key] of [CALLER, ASKED].entries()) {
      await insertSession(tx, { ...sessionRow(key, at), key });
    }
    for (let at = 0; at < Number(historyLength); at += 1) {
      const entry = {
        id: randomUUID(),
        role: "user" as const,
        content: [{ type: "text" as const, text: "some words of before. ".repeat(25) }],
        timestamp: 1,
      };
      await appendEntry(tx, { sessionKey: CALLER, sessionId: "session-0", entry }, world.redactor);
    }
  });
}

async function measure(disk: Store, world: World): Promise<void> {
  let commits = 0;
  const store: Store = {
    ...disk,
    transaction: (work) => {
      commits += 1;
      return disk.transaction(work);
    },
  };
  const defaults = benchSettings();
  const settings = { ...defaults, tools: { ...defaults.tools, visibility: "agent" as const } };
  await prepared(store, world);
  const port = instantModel(world, answerTo);
  const engine = await instantEngine({ store, world, settings, maxConcurrent: 8, port });
  const rounds = async (name: string, texts: readonly (readonly [string, string])[]): Promise<void> => {
    const all = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1)
        for (const [key, text] of texts) await oneRun(engine, key, 60_000, text);
    };
    await all(WARM);
    commits = 0;
    const cpu = process.cpuUsage();
    const begun = performance.now();
    await all(ROUNDS);
    const { user, system } = process.cpuUsage(cpu);
    const ms = (performance.now() - begun) / ROUNDS;
    const cpuMs = (user + system) / 1_000 / ROUNDS;
    console.log(
      `${name}: ${commits / ROUNDS} commits, ${cpuMs.toFixed(2)} ms processor, ${ms.toFixed(2)} ms`,
    );
  };
  await rounds("waited send", [[CALLER, "ask now"]]);
  await rounds("the same runs apart", [
    [CALLER, "look now"],
    [ASKED, "hello"],
  ]);
  await rounds("one plain run more", [[CALLER, "hello"]]);
  await engine.stop(0);
}

const plain = realWorld({ level: "warn", sync: true });
if (kind === "sqlite") {
  await inFolder(async (dir) => {
    const store = await openSqlite({ dir, durability: "full", log: plain.log, clock: plain.clock });
    await measure(store, plain);
    await store.close();
  });
} else {
  const server = await startPostgres(["-c", "fsync=on"]);
  const store = await openPostgres({ url: server.url, world: plain });
  await measure(store, sharedWorld(store, plain));
  await store.close();
  await server.end();
}
