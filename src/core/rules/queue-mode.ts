// Decides whether a new message may interrupt the current run, or be added to that run (`QueueMode`). Only a
// message from the chat that the run answers may do either, and no message overtakes an earlier one (I3).

import { isSameRoute } from "../shapes/route.ts";
import type { Run } from "../shapes/run.ts";
import type { Route } from "../shapes/session.ts";

/**
 * Returns the current run of a lane: the first unfinished run, if it has started. It need not be executing
 * now, for example after a restart of the gateway.
 */
function underWay([head]: readonly Run[]): Run | undefined {
  return head?.startedAt === undefined || head.kind !== "turn" ? undefined : head;
}

/**
 * Returns the run that a message from `route` interrupts. `active` are the unfinished runs of the lane, in
 * order.
 */
export function interruptedBy(active: readonly Run[], route: Route | undefined): Run | undefined {
  const run = underWay(active);
  if (run === undefined || !isSameRoute(run.route, route)) return undefined;
  // A person's message must not cancel a run that a session, a job or a web hook requested.
  return run.flow === undefined && run.input.provenance === undefined ? run : undefined;
}

/**
 * Returns whether the current run may read a message from `route`. False if another run waits before the
 * message.
 */
export function maySteer(active: readonly Run[], route: Route | undefined): boolean {
  const run = underWay(active);
  const waiting = active.slice(1).filter((one) => one.input.takenBy === undefined);
  if (run === undefined || waiting.length > 0 || !isSameRoute(run.route, route)) return false;
  // A run of a schedule, a web hook or a node answers at its configured destination, not in this chat.
  const from = run.input.provenance?.kind;
  if (from === "hook" || from === "cron" || from === "node") return false;
  // A turn of a conversation between sessions answers the other session, not a chat.
  return run.flow === undefined || run.flow.step === "task";
}

/**
 * Returns whether a run, between two of its steps, reads the message of the next run in its lane. If it does,
 * it takes over that run.
 */
export function takesOver(run: Run, next: Run | undefined): next is Run {
  return (
    next?.input.steer === true &&
    next.kind === "turn" &&
    next.startedAt === undefined &&
    next.sessionId === run.sessionId &&
    // An owner's run knows the memory (ME3 of core/rules/prompt/memory.ts).
    (next.input.guest !== true || run.input.guest === true) &&
    isSameRoute(next.route, run.route)
  );
}
