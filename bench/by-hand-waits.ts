// Counts what one waited `sessions_send`, made as a tool call, costs beside the same two runs without it:
// `node bench/by-hand-waits.ts [sqlite|postgres] [messages in the caller's transcript]`.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelPort } from "../src/agent/model.ts";
import { ok } from "../src/core/errors.ts";
import { type Entry, isCompaction, type Message, ZERO_USAGE } from "../src/core/message.ts";
import { isEnded } from "../src/core/run.ts";
import { Engine } from "../src/engine/engine.ts";
import { sharedWorld } from "../src/engine/shared-world.ts";
import { createExecutor } from "../src/execute.ts";
import { createSuccessors } from "../src/flows/successors.ts";
import { openPostgres } from "../src/store/postgres.ts";
import { insertSession } from "../src/store/sessions.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { appendEntry } from "../src/store/transcripts.ts";
import { realWorld, type World } from "../src/world.ts";
import { startPostgres } from "../tests/kit/postgres-server.ts";
import { benchSettings, chatKey, sessionRow } from "./instant.ts";

const [kind = "sqlite", historyLength = "20"] = process.argv.slice(2);
const ROUNDS = 60;
const WARM = 15;
const [CALLER, ASKED] = [chatKey(1), chatKey(2)];

const userTextOf = (entries: readonly Entry[]): { text: string; results: number } => {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const at = messages.findLastIndex((message) => message.role === "user");
  return { text: JSON.stringify(messages[at]), results: messages.length - 1 - at };
};

/** Answers at once: `ask` makes the call, anything else is answered with a text. */
function modelOf(world: World): ModelPort {
  return {
    async call({ model, entries }) {
      const { text, results } = userTextOf(entries);
      const args = { sessionKey: ASKED, message: "hello", timeoutSeconds: 60 };
      const asks = text.includes("ask now") && results === 0;
      const list = text.includes("look now") && results === 0;
      const name = asks ? "sessions_send" : "agents_list";
      const call = { type: "toolCall" as const, id: "c", name, arguments: asks ? args : {} };
      const message = {
        role: "assistant" as const,
        content: asks || list ? [call] : [{ type: "text" as const, text: "REPLY_SKIP" }],
        timestamp: world.clock.now(),
        ...{ api: "bench", provider: "bench", model: model.settings.id },
        usage: { ...ZERO_USAGE, input: 10, output: 1, totalTokens: 11 },
        stopReason: asks || list ? "toolUse" : "stop",
      };
      return { kind: "message", message };
    },
  };
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
  const engine: Engine = new Engine({
    store,
    world,
    settings: { ...settings.session, ...settings.session.agentToAgent, maxConcurrent: 8 },
    successors: createSuccessors({
      settings,
      transcriptPath: () => undefined,
      outbound: { deliveryQueued: () => {} },
    }),
    executor: createExecutor({
      ...{ settings, store, world, port: modelOf(world) },
      sandboxFor: async () => ok(undefined),
      engine: () => engine,
    }),
  });
  await prepared(store, world);
  await engine.start();
  const one = async (sessionKey: string, text: string): Promise<void> => {
    const accepted = await engine.accept({ sessionKey, input: { text } });
    if (!accepted.ok) throw new Error(accepted.error);
    const run = await engine.waitForRun(accepted.value.run.runId, engine.now() + 60_000);
    if (run === undefined || !isEnded(run.state) || run.state !== "ok") throw new Error(run?.error);
  };
  const rounds = async (name: string, texts: readonly (readonly [string, string])[]): Promise<void> => {
    const all = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) for (const [key, text] of texts) await one(key, text);
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
  const dir = mkdtempSync(join(tmpdir(), "parley-waits-"));
  const store = await openSqlite({ dir, durability: "full", log: plain.log });
  await measure(store, plain);
  await store.close();
  rmSync(dir, { recursive: true });
} else {
  const server = await startPostgres(["-c", "fsync=on"]);
  const store = await openPostgres({ url: server.url, world: plain });
  await measure(store, sharedWorld(store, plain));
  await store.close();
  await server.end();
}
