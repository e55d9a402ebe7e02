// The figures of sub-agents, on a whole gateway with the offline model: how long a spawn takes, and how long
// fifty children take from the message that starts them to the last result in the requester's transcript.

import { type App, openApp } from "../src/app.ts";
import { loadSettings } from "../src/config.ts";
import type { LiveEvent } from "../src/core/event.ts";
import type { Settings } from "../src/core/settings.ts";
import { sessionViewer } from "../src/flows/access.ts";
import { getSession, updateSession } from "../src/store/sessions.ts";
import { callTool, toolNames } from "../src/tools/catalog.ts";
import type { World } from "../src/world.ts";
import type { Row } from "./measure.ts";

const MAIN = "agent:main:main";
const ROUTE = { channel: "webchat", to: MAIN };
const CHILDREN = 50;
const ROUNDS = 5;
const SPAWNS = 300;
const WARM_UP = 50;

function settingsIn(dir: string): Settings {
  const loaded = loadSettings({ env: {}, home: dir, overrides: { port: 0 } });
  if (!loaded.ok) throw new Error(loaded.error);
  const { settings } = loaded.value;
  return { ...settings, subagents: { ...settings.subagents, maxChildren: CHILDREN } };
}

type Work<T> = (app: App, settings: Settings) => Promise<T>;

async function withApp<T>(dir: string, world: World, work: Work<T>): Promise<T> {
  const settings = settingsIn(dir);
  const app = await openApp({ settings, world, version: "bench", environment: {} });
  if (!app.ok) throw new Error(app.error);
  try {
    await app.value.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: ROUTE }));
    return await work(app.value, settings);
  } finally {
    await app.value.close(0);
  }
}

/** Resolves when so many announcements more are in main's transcript. */
function announcements(app: App, wanted: number): Promise<void> {
  return new Promise((resolve) => {
    let found = 0;
    const off = app.engine.bus.subscribe((event: LiveEvent) => {
      if (event.kind !== "message" || event.sessionKey !== MAIN || event.message.role !== "user") return;
      if (event.message.provenance?.kind !== "inter_session") return;
      found += 1;
      if (found < wanted) return;
      off();
      resolve();
    });
  });
}

/** The tool call alone: checks, and the unit that writes session, job and run. The child runs unmeasured. */
async function spawnMs(app: App, settings: Settings): Promise<number[]> {
  const samples: number[] = [];
  for (let at = 0; at < WARM_UP + SPAWNS; at += 1) {
    const session = await getSession(app.store.db, MAIN);
    const agent = settings.agents[0];
    if (session === undefined || agent === undefined) throw new Error("there is no main session");
    const context = {
      settings,
      db: app.store.db,
      engine: app.engine,
      viewer: sessionViewer([session], settings),
      session,
      agent,
      chain: [session] as const,
      toolNames: toolNames(),
      signal: new AbortController().signal,
    };
    const request = {
      callId: `bench-${at}`,
      attempt: 1,
      name: "sessions_spawn",
      arguments: { task: "say done" },
    };
    const over = announcements(app, 1);
    const from = performance.now();
    const result = await callTool(context, request);
    const took = performance.now() - from;
    if (result.status !== "accepted") throw new Error(JSON.stringify(result));
    if (at >= WARM_UP) samples.push(took);
    await over;
  }
  return samples;
}

async function fiftyChildren(app: App): Promise<number> {
  const over = announcements(app, CHILDREN);
  const from = performance.now();
  const text = `spawn ${CHILDREN} jobs: say result {n} is there`;
  const accepted = await app.engine.accept({ sessionKey: MAIN, input: { text }, route: ROUTE });
  if (!accepted.ok) throw new Error(accepted.error);
  await over;
  return (performance.now() - from) / 1_000;
}

export async function spawning(
  inFolder: <T>(work: (dir: string) => Promise<T>) => Promise<T>,
  world: World,
): Promise<Row[]> {
  const spawns = await inFolder((dir) => withApp(dir, world, spawnMs));
  const rounds: number[] = [];
  // A store of its own each time, as for somebody who does it once.
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(await inFolder((dir) => withApp(dir, world, fiftyChildren)));
  }
  return [
    {
      name: "sessions_spawn -> accepted",
      size: "one at a time",
      unit: "ms",
      samples: spawns,
      target: "< 5",
    },
    {
      name: `${CHILDREN} children announced`,
      size: "one message",
      unit: "s",
      samples: rounds,
      target: "< 10",
    },
  ];
}
