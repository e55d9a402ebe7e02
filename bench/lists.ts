// Benchmarks lists of sessions at several sizes of the store: the tool with each filter and visibility mode,
// and the gateway's method over a WebSocket.

import type { App } from "../src/app.ts";
import { connect, type GatewayClient } from "../src/contract/client/node.ts";
import type { Session } from "../src/core/shapes/session.ts";
import type { Settings, VisibilityMode } from "../src/core/shapes/settings/settings.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { world } from "./engine-alone.ts";
import {
  Filling,
  placeOf,
  RARE_AGENT,
  RARE_KIND,
  RARE_LABEL,
  SENTENCE,
  sessionIdOf,
  sessionKeyOf,
} from "./filling.ts";
import { sessionRow } from "./instant.ts";
import { type Row, sampleFor, sizeText } from "./measure.ts";
import { callerOf } from "./session-caller.ts";
import { withApp } from "./with-app.ts";

const MODES: readonly VisibilityMode[] = ["self", "tree", "agent", "all"];
const CHILDREN = 60;
/** Number of sessions with messages. Each has more messages than a page shows. */
const TALKED = 60;
const MESSAGES_EACH = 12;
const TARGET = "< 3";

/** Every filter of the tool, and those pairs of filters that select few of many rows. */
const FILTERS: Readonly<Record<string, Record<string, unknown>>> = {
  "no filter": {},
  "limit 200": { limit: 200 },
  "messageLimit 5": { messageLimit: 5 },
  "kinds, frequent": { kinds: ["other"] },
  "kinds, two": { kinds: ["group", "cron"] },
  "kinds, rare": { kinds: [RARE_KIND] },
  "agentId, own": { agentId: "main" },
  "agentId, rare": { agentId: RARE_AGENT },
  "agentId and rare kind": { agentId: "main", kinds: [RARE_KIND] },
  "activeMinutes 60": { activeMinutes: 60 },
  "activeMinutes and rare kind": { activeMinutes: 60 * 24 * 30, kinds: [RARE_KIND] },
  "search, rare": { search: RARE_LABEL },
  "search, nothing": { search: "no such name" },
  "search, two signs": { search: "zq" },
  "search, frequent": { search: "conversation" },
  "search, frequent, rare kind": { search: "conversation", kinds: [RARE_KIND] },
};

/** Filters of the gateway's method that the tool does not have. */
const METHOD_FILTERS: Readonly<Record<string, Record<string, unknown>>> = {
  "no filter, 200 rows": {},
  "titles, 200 rows": { includeDerivedTitles: true },
  roots: { roots: true, limit: 50 },
  label: { label: "conversation 5", limit: 50 },
  "includeArchived and rare kind": { includeArchived: true, kinds: [RARE_KIND], limit: 50 },
  spawnedBy: { spawnedBy: sessionKeyOf(5), limit: 50 },
  "titles, last messages, children": {
    includeDerivedTitles: true,
    includeLastMessage: true,
    includeChildren: true,
    limit: 50,
  },
};

interface Ground {
  readonly app: App;
  readonly settings: Settings;
  readonly client: GatewayClient;
  readonly viewer: Session;
}

/** Runs `work` with a gateway and a session that has children and calls the tool. */
async function withViewer<T>(work: (ground: Ground) => Promise<T>): Promise<T> {
  return withApp(async (app, settings) => {
    const { port, token, store } = app;
    const client = await connect({ url: `ws://127.0.0.1:${port}`, token });
    try {
      const now = world.clock.now();
      const viewer = { ...sessionRow(sessionKeyOf(-10), now), sessionId: sessionIdOf(-10), updatedAt: now };
      await store.transaction(async (tx) => {
        await insertSession(tx, viewer);
        for (let at = 0; at < CHILDREN; at += 1) {
          const key = `agent:main:subagent:${sessionIdOf(-100 - at)}`;
          const child = { ...sessionRow(key, now), sessionId: sessionIdOf(-200 - at), updatedAt: now - at };
          await insertSession(tx, { ...child, spawnedBy: viewer.key, spawnDepth: 1 });
        }
      });
      return await work({ app, settings, client, viewer });
    } finally {
      client.close();
    }
  });
}

async function rowsAt(ground: Ground, size: number): Promise<Row[]> {
  const rows: Row[] = [];
  const add = (plot: string, line: string, samples: number[]): void => {
    const growth = { plot, line, at: size, of: "sessions" };
    rows.push({
      name: `${plot}: ${line}`,
      size: sizeText(size, "sessions"),
      unit: "ms",
      samples,
      target: TARGET,
      growth,
    });
  };
  for (const mode of MODES) {
    const { store, engine } = ground.app;
    const call = callerOf({ store, engine, settings: ground.settings }, ground.viewer, mode);
    for (const [line, args] of Object.entries(FILTERS)) {
      add(`sessions_list, sees ${mode}`, line, await sampleFor(() => call("sessions_list", args)));
    }
  }
  for (const [line, params] of Object.entries(METHOD_FILTERS)) {
    const samples = await sampleFor(() => ground.client.request("sessions.list", params));
    add("sessions.list over WebSocket", line, samples);
  }
  return rows;
}

/** Runs all reads at each of these sizes, in one store that grows. */
export async function lists({ sizes }: { readonly sizes: readonly number[] }): Promise<Row[]> {
  return withViewer(async (ground) => {
    const filling = new Filling(ground.settings.store.dir, world.clock.now());
    const rows: Row[] = [];
    try {
      let filled = 0;
      for (const size of sizes) {
        filling.sessions(filled, size);
        if (filled === 0) {
          filling.messages(0, TALKED * MESSAGES_EACH, (at) => ({
            ...placeOf(Math.floor(at / MESSAGES_EACH)),
            text: `${at} ${SENTENCE}`,
          }));
        }
        filled = size;
        filling.settle();
        rows.push(...(await rowsAt(ground, size)));
      }
    } finally {
      filling.close();
    }
    return rows;
  });
}
