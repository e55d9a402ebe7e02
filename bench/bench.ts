// The figures of the product: `npm run bench`. Prints machine, sizes and percentiles; `--json FILE` writes
// the samples too.
// BN1: nothing is asserted here, and no figure is rounded in our favour: the table is what was measured.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Session } from "../src/core/session.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Engine } from "../src/engine/engine.ts";
import { sessionViewer } from "../src/flows/access.ts";
import { insertSession } from "../src/store/sessions.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { appendEntry } from "../src/store/transcripts.ts";
import { callTool, toolNames } from "../src/tools/catalog.ts";
import { realWorld } from "../src/world.ts";
import { conversations } from "./conversations.ts";
import { fanOut, memory, recovery } from "./endurance.ts";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "./instant.ts";
import { machine, type Row, residentMb, sample, table } from "./measure.ts";
import { runs } from "./runs.ts";
import { spawning } from "./spawning.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const SESSIONS = 100_000;
const MESSAGES = 10_000;
const MAIN = "agent:main:main";
const IDLE_MS = 3_000;
const READY_MAX_MS = 20_000;
const world = realWorld({ level: "silent" });

async function inFolder<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "parley-bench-"));
  try {
    return await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Starts the real program, waits until it answers that it is ready, and ends it again. */
async function startOnce(idle: boolean): Promise<{ readyMs: number; idleMb: number | undefined }> {
  return inFolder(async (home) => {
    const from = performance.now();
    const env = { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "silent" };
    // As `npm start` starts it.
    const args = ["--max-semi-space-size=2", join(ROOT, "bin", "parley.js"), "gateway", "--port", "0"];
    const child = spawn(process.execPath, args, { env });
    try {
      const url = await new Promise<string>((resolve, reject) => {
        let text = "";
        child.stdout.on("data", (chunk: Buffer) => {
          text += chunk.toString();
          const found = /http:\/\/[\d.]+:\d+/.exec(text);
          if (found !== null) resolve(found[0]);
        });
        child.once("exit", (code) => reject(new Error(`the gateway ended with ${code}: ${text}`)));
        setTimeout(() => reject(new Error(`not ready in ${READY_MAX_MS} ms: ${text}`)), READY_MAX_MS).unref();
      });
      const ready = await fetch(`${url}/readyz`);
      if (ready.status !== 200) throw new Error(`/readyz says ${ready.status}`);
      const readyMs = performance.now() - from;
      if (idle) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      return { readyMs, idleMb: child.pid === undefined ? undefined : residentMb(child.pid) };
    } finally {
      child.removeAllListeners("exit");
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    }
  });
}

async function startUp(): Promise<Row[]> {
  const readyMs: number[] = [];
  for (let at = 0; at < 16; at += 1) readyMs.push((await startOnce(false)).readyMs);
  const { idleMb } = await startOnce(true);
  return [
    // The first start fills the disk cache and counts for nobody who starts twice.
    {
      name: "cold start to /readyz",
      size: "empty store",
      unit: "ms",
      samples: readyMs.slice(1),
      target: "< 400",
    },
    ...(idleMb === undefined
      ? []
      : [{ name: "idle RSS", size: "empty store", unit: "MB" as const, samples: [idleMb], target: "< 110" }]),
  ];
}

interface Bench {
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
}

async function withEngine<T>(work: (bench: Bench) => Promise<T>): Promise<T> {
  return inFolder(async (dir) => {
    const settings = benchSettings(dir);
    const store = await openSqlite({ dir: settings.store.dir, durability: "full", log: world.log });
    const { maxConcurrent } = settings;
    const engine = await instantEngine({ store, world, settings, maxConcurrent });
    try {
      return await work({ engine, store, settings });
    } finally {
      await engine.stop(0);
      await store.close();
    }
  });
}

/** From the call to accept until the waiter is told: four commits with synchronous=FULL. */
async function runOverhead(): Promise<Row> {
  const samples = await withEngine(({ engine, store }) =>
    sample(1_000, 200, async (at) => {
      const sessionKey = chatKey(at % 50);
      if (at < 50) await store.transaction((tx) => insertSession(tx, sessionRow(sessionKey, at)));
      await oneRun(engine, sessionKey, 10_000);
    }),
  );
  return {
    name: "run overhead, in process",
    size: "50 sessions in turn",
    unit: "ms",
    samples,
    target: "< 3",
  };
}

async function fillSessions(store: Store): Promise<void> {
  const batch = 10_000;
  for (let from = 0; from < SESSIONS; from += batch) {
    await store.transaction(async (tx) => {
      for (let at = from; at < from + batch; at += 1) {
        const id = at.toString(16).padStart(8, "0");
        await insertSession(tx, sessionRow(`agent:main:chat:${id}-0000-4000-8000-000000000000`, at));
      }
    });
  }
}

async function fillTranscript(store: Store, session: Session): Promise<void> {
  const text = "a sentence of ordinary length, as people write them to each other. ".repeat(3);
  await store.transaction(async (tx) => {
    for (let at = 0; at < MESSAGES; at += 1) {
      const entry = {
        id: `message-${at}`,
        role: "user" as const,
        content: [{ type: "text" as const, text: `${at} ${text}` }],
        timestamp: at,
      };
      await appendEntry(tx, { sessionKey: session.key, sessionId: session.sessionId, entry });
    }
  });
}

async function readingTools(): Promise<Row[]> {
  return withEngine(async ({ engine, store, settings }) => {
    await fillSessions(store);
    const talker = sessionRow(
      MAIN.replace("main:main", "main:chat:ffffffff-0000-4000-8000-000000000000"),
      SESSIONS + 1,
    );
    await store.transaction((tx) => insertSession(tx, talker));
    await fillTranscript(store, talker);
    const agent = settings.agents[0];
    if (agent === undefined) throw new Error("no agent");
    const open: Settings = { ...settings, tools: { ...settings.tools, visibility: "agent" } };
    const call = async (name: string, args: Record<string, unknown>): Promise<void> => {
      const result = await callTool(
        {
          settings: open,
          db: store.db,
          engine,
          viewer: sessionViewer([talker], open),
          session: talker,
          agent,
          chain: [talker],
          toolNames: toolNames(),
          signal: new AbortController().signal,
        },
        { callId: "bench", attempt: 1, name, arguments: args },
      );
      if (result.status === "error" || result.status === "forbidden") throw new Error(JSON.stringify(result));
    };
    const list = await sample(500, 100, () => call("sessions_list", { limit: 50 }));
    const history = await sample(500, 100, () =>
      call("sessions_history", { sessionKey: talker.key, limit: 50 }),
    );
    return [
      {
        name: "sessions_list, 50 rows",
        size: `${SESSIONS} sessions`,
        unit: "ms" as const,
        samples: list,
        target: "< 2",
      },
      {
        name: "sessions_history, last 50",
        size: `${MESSAGES} messages`,
        unit: "ms" as const,
        samples: history,
        target: "< 2",
      },
    ];
  });
}

const rows = [
  ...(await startUp()),
  await runOverhead(),
  ...(await runs()),
  ...(await conversations()),
  ...(await spawning(inFolder, world)),
  ...(await fanOut()),
  ...(await recovery()),
  ...(await memory()),
  ...(await readingTools()),
];
console.log(`${machine()}; store: node:sqlite, WAL, synchronous=FULL\n\n${table(rows)}`);
const jsonAt = process.argv.indexOf("--json");
const file = jsonAt < 0 ? undefined : process.argv[jsonAt + 1];
if (file !== undefined) writeFileSync(file, JSON.stringify({ machine: machine(), rows }, null, 2));
