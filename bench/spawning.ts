// The figure of many sub-agents at once, on a whole gateway with the offline model: how long fifty children
// take from the message that starts them to the last result in the requester's transcript.

import { type App, openApp } from "../src/app.ts";
import { loadSettings } from "../src/config.ts";
import type { LiveEvent } from "../src/core/event.ts";
import type { Settings } from "../src/core/settings.ts";
import { updateSession } from "../src/store/sessions.ts";
import type { World } from "../src/world.ts";
import type { Row } from "./measure.ts";

const MAIN = "agent:main:main";
const ROUTE = { channel: "webchat", to: MAIN };
const CHILDREN = 50;
const ROUNDS = 5;

function settingsIn(dir: string): Settings {
  const loaded = loadSettings({ env: {}, home: dir, overrides: { port: 0 } });
  if (!loaded.ok) throw new Error(loaded.error);
  const { settings } = loaded.value;
  return { ...settings, subagents: { ...settings.subagents, maxChildren: CHILDREN } };
}

type Work<T> = (app: App) => Promise<T>;

async function withApp<T>(dir: string, world: World, work: Work<T>): Promise<T> {
  const settings = settingsIn(dir);
  const app = await openApp({ settings, world, version: "bench", environment: {} });
  if (!app.ok) throw new Error(app.error);
  try {
    await app.value.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: ROUTE }));
    return await work(app.value);
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
  const rounds: number[] = [];
  // A store of its own each time, as for somebody who does it once.
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(await inFolder((dir) => withApp(dir, world, fiftyChildren)));
  }
  return [
    {
      name: `${CHILDREN} children announced`,
      size: "one message",
      unit: "s",
      samples: rounds,
      target: "< 10",
    },
  ];
}
