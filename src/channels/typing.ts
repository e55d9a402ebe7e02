// Shows typing indicators: in the chat of a message, while the message's run executes in this process.
// TY1: showing them is best effort. Failures are ignored, and no run waits for them.
// TY2: the number of runs with an indicator, and the time for each, are limited. For each run, at most one
// call is in progress.

import { isInHouse } from "../core/shapes/route.ts";
import { answerRoute } from "../core/shapes/run.ts";
import type { Route } from "../core/shapes/session.ts";
import type { Bus } from "../engine/bus.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import type { Db } from "../store/sql.ts";
import type { Timer, World } from "../world.ts";
import type { Channel } from "./channel.ts";

/** Interval of the calls. It is shorter than the five seconds for which platforms show a typing indicator. */
const AGAIN_MS = 4_000;
const SHOWN_MAX_MS = 15 * 60_000;
const RUNS_MAX = 64;

interface TypingParts {
  readonly bus: Bus;
  readonly db: Db;
  readonly world: World;
  readonly channels: ReadonlyMap<string, Channel>;
}

interface Shown {
  timer?: Timer;
  readonly untilMs: number;
}

/** Shows typing indicators for runs that answer people on channels. The returned function stops it. */
export function followTyping({ bus, db, world, channels }: TypingParts): () => void {
  const shown = new Map<string, Shown>();
  const { clock } = world;
  const end = (runId: string): void => {
    shown.get(runId)?.timer?.cancel();
    shown.delete(runId);
  };
  const show = async (runId: string, route: Route): Promise<void> => {
    const channel = channels.get(route.channel);
    const own = shown.get(runId);
    if (channel?.typing === undefined || own === undefined || clock.monotonic() >= own.untilMs)
      return end(runId);
    await channel.typing(route).catch((error: unknown) => {
      world.log.debug({ err: error, channel: route.channel }, "the typing indicator could not be shown");
    });
    if (shown.get(runId) !== own) return;
    own.timer = clock.after(AGAIN_MS, () => void show(runId, route));
  };
  const begin = async (runId: string): Promise<void> => {
    if (shown.size >= RUNS_MAX || shown.has(runId)) return;
    shown.set(runId, { untilMs: clock.monotonic() + SHOWN_MAX_MS });
    const run = await getRun(db, runId).catch(() => undefined);
    const route = run && answerRoute(run);
    // A run shows no indicator if it answers another session instead of a person.
    if (route === undefined || isInHouse(route) || run?.flow !== undefined) return end(runId);
    await show(runId, route);
  };
  const leave = bus.subscribe((event, here) => {
    if (event.kind === "run_started" && here && event.flowStep === undefined) void begin(event.runId);
    if (event.kind === "run_ended") end(event.runId);
  });
  return () => {
    leave();
    for (const runId of [...shown.keys()]) end(runId);
  };
}
