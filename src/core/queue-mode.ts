// Owns which run a message that comes meanwhile may end, or be read by (`QueueMode`).
// QU1: only a run that answers the very place that the message came from.
// QU2: a message overtakes none that was accepted before it (I3).

import { isSamePlace } from "./route.ts";
import type { Run } from "./run.ts";
import type { Route } from "./session.ts";

/** The run that a lane is at: the first unfinished one, once it has begun. It may be parked. */
function underWay([head]: readonly Run[]): Run | undefined {
  return head?.startedAt === undefined || head.kind !== "turn" ? undefined : head;
}

/** The run that a message from `route` ends, of those unfinished in its lane, which are in order. */
export function interruptedBy(active: readonly Run[], route: Route | undefined): Run | undefined {
  const run = underWay(active);
  if (run === undefined || !isSamePlace(run.route, route)) return undefined;
  // What a session, a job or a web hook asked for is not a person's to end by writing a message.
  return run.flow === undefined && run.input.provenance === undefined ? run : undefined;
}

/** Whether the run under way may read a message from `route`: nobody waits in between. */
export function maySteer(active: readonly Run[], route: Route | undefined): boolean {
  const run = underWay(active);
  const waiting = active.slice(1).filter((one) => one.input.takenBy === undefined);
  if (run === undefined || waiting.length > 0 || !isSamePlace(run.route, route)) return false;
  // What time or a machine set off answers where that says, if it answers at all.
  const from = run.input.provenance?.kind;
  if (from === "hook" || from === "cron" || from === "node") return false;
  // Turns of a conversation are for its other party.
  return run.flow === undefined || run.flow.step === "task";
}

/** Whether a run takes over the next one of its lane, asked between two steps of it. */
export function takesOver(run: Run, next: Run | undefined): next is Run {
  return (
    next?.input.steer === true &&
    next.kind === "turn" &&
    next.startedAt === undefined &&
    next.sessionId === run.sessionId &&
    isSamePlace(next.route, run.route)
  );
}
