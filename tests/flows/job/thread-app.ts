// An app with a channel `discord` whose threads the test creates. Its agent `main` spawns the tasks in its
// message.

import type { OpenedThread } from "../../../src/channels/channel.ts";
import { ok, type Result } from "../../../src/core/shapes/errors.ts";
import type { Route, Session } from "../../../src/core/shapes/session.ts";
import type { ThreadBindingSettings } from "../../../src/core/shapes/settings/channels.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { acceptByMode } from "../../../src/flows/conversation/direct.ts";
import { boundSession } from "../../../src/flows/delivery/bindings.ts";
import { listBindings } from "../../../src/store/queries/channels/thread-bindings.ts";
import { endOf } from "../../kit/engine/engine.ts";
import {
  openSpawnApp,
  type SpawnApp,
  type SpawnAppOptions,
  type SpawnPlay,
} from "../../kit/engine/spawn-app.ts";
import { OPEN_ACCOUNT } from "../../kit/platforms/open-account.ts";
import { settingsWith } from "../../tools/app.ts";

export const MAIN = "agent:main:main";
export const ROOM: Route = { channel: "discord", to: "room", accountId: "default" };

export function settingsOf(bindings: Partial<ThreadBindingSettings> = {}, subagents: object = {}): Settings {
  const base = settingsWith();
  const account = {
    ...OPEN_ACCOUNT,
    ...{ channel: "discord", token: "t", restUrl: "http://127.0.0.1:1", requireMention: false },
    threadBindings: { ...OPEN_ACCOUNT.threadBindings, ...bindings },
  };
  return { ...base, channels: [account], subagents: { ...base.subagents, ...subagents } };
}

/** Returns a function that creates threads like Discord, and records them. */
function threadMaker(answer?: (at: Route, title: string) => Result<OpenedThread>) {
  const opened: { at: Route; title: string }[] = [];
  return {
    opened,
    openThread: async (at: Route, title: string): Promise<Result<OpenedThread>> => {
      opened.push({ at, title });
      const route = { ...at, threadId: `thread-${opened.length}` };
      return answer?.(at, title) ?? ok({ route, kind: "created" });
    },
  };
}

/**
 * Returns a play: main spawns the task in its message with these arguments. The sub-agent reports its work,
 * or fails if the task says so.
 */
const spawning =
  (args: Record<string, unknown> = {}): SpawnPlay =>
  async (turn) => {
    if (turn.session.key === MAIN) {
      return JSON.stringify(await turn.tool("sessions_spawn", { task: turn.input, thread: true, ...args }));
    }
    if (turn.input === "fail") throw new Error("it broke");
    return turn.input === "be silent" ? "ANNOUNCE_SKIP" : `did ${turn.input}`;
  };

export async function openThreads(
  options: Partial<SpawnAppOptions> & { args?: Record<string, unknown> } = {},
) {
  const maker = threadMaker();
  const own = options.settings ?? settingsOf();
  const app = await openSpawnApp({
    settings: own,
    play: spawning(options.args),
    openThread: maker.openThread,
    ...options,
  });
  return { app, own, ...maker, parts: { settings: own } };
}

/** Sends a message to main, and returns the result of the spawn that it makes. */
export async function spawned(
  app: SpawnApp,
  task: string,
  route: Route = ROOM,
): Promise<Record<string, unknown>> {
  const run = await app.tell(MAIN, task, undefined, route);
  const answer = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
  await app.quiet();
  return answer;
}

export async function childOf(app: SpawnApp): Promise<Session> {
  const [child] = await app.children(MAIN);
  if (child === undefined) throw new Error("no child");
  return child;
}

export const places = async (app: SpawnApp): Promise<Route[]> =>
  (await listBindings(app.store.db, { limit: 100 })).map(({ route }) => route);

/** Returns the texts posted in threads, without main's own answers in the channel. */
export const shown = (app: SpawnApp): string[] =>
  app.sent.flatMap(({ route, text }) =>
    route.threadId === undefined ? [] : [`${route.to}/${route.threadId}: ${text}`],
  );

/** Returns the deliveries to threads, with their states. */
export async function threadRows(app: SpawnApp): Promise<{ text: string; state: string; route: Route }[]> {
  const rows = await app.store.db
    .selectFrom("deliveries")
    .select(["text", "state", "route_json"])
    .orderBy("seq")
    .execute();
  return rows
    .map(({ text, state, route_json }) => ({ text, state, route: JSON.parse(route_json) as Route }))
    .filter(({ route }) => route.threadId !== undefined);
}

/** Sends a message of a person in a chat. */
export async function writes(app: SpawnApp, own: Settings, route: Route, text: string): Promise<string> {
  const parts = { settings: own };
  return app.engine.commit(async (unit) => {
    const bound = await boundSession(parts, unit, route);
    const sessionKey = bound?.key ?? MAIN;
    const request = { sessionKey, input: { text }, route };
    const accepted = await acceptByMode(app.engine, unit, request, "followup");
    if (!accepted.ok) throw new Error(accepted.error);
    return sessionKey;
  });
}
