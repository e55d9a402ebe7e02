// Benchmarks many sub-agents at once on a whole gateway with the offline model: the time from the message
// that starts fifty of them until the last result is in the requester's transcript.

import type { App } from "../src/app.ts";
import type { LiveEvent } from "../src/core/shapes/event.ts";
import type { Settings } from "../src/core/shapes/settings/settings.ts";
import { updateSession } from "../src/store/queries/sessions/sessions.ts";
import type { Row } from "./measure.ts";
import { withApp } from "./with-app.ts";

const MAIN = "agent:main:main";
const ROUTE = { channel: "webchat", to: MAIN };
const CHILDREN = 50;
const ROUNDS = 5;

const withRoom = (settings: Settings): Settings => ({
  ...settings,
  subagents: { ...settings.subagents, maxChildren: CHILDREN },
});

/** Resolves when the transcript of `main` has this many more announcements than now. */
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
  await app.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: ROUTE }));
  const over = announcements(app, CHILDREN);
  const from = performance.now();
  const text = `spawn ${CHILDREN} jobs: say result {n} is there`;
  const accepted = await app.engine.accept({ sessionKey: MAIN, input: { text }, route: ROUTE });
  if (!accepted.ok) throw new Error(accepted.error);
  await over;
  return (performance.now() - from) / 1_000;
}

export async function spawning(): Promise<Row[]> {
  const rounds: number[] = [];
  // Use a new store in each round, so that each round measures a new gateway.
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(await withApp(fiftyChildren, withRoom));
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
