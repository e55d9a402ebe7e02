// Describes in one line what a session is doing: the step and its duration, retries, sub-agents, waits.
// Events say what the run does; the row of the session says the rest. All functions are pure.

import type { AgentEvent, ChatEvent } from "../../contract/events.ts";
import type { ListedRow } from "../../contract/methods/sessions.ts";
import { retryWords } from "../../core/shapes/model-retry.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { age, count } from "../layout.ts";

export type Activity =
  | { readonly kind: "idle" }
  | { readonly kind: "working"; readonly step: string; readonly sinceMs: number };

export const IDLE: Activity = { kind: "idle" };

const THINKING = "thinking";
const WRITING = "writing";

/** Begins a step. A repeated event of the same step does not restart its time. */
function step(activity: Activity, name: string, atMs: number): Activity {
  if (activity.kind === "working" && activity.step === name) return activity;
  return { kind: "working", step: name, sinceMs: atMs };
}

export function onAgentEvent(activity: Activity, event: AgentEvent): Activity {
  switch (event.stream) {
    case "lifecycle":
      return event.data.phase === "start" ? step(IDLE, THINKING, event.ts) : IDLE;
    case "tool":
      return step(activity, event.data.phase === "start" ? event.data.name : THINKING, event.ts);
    case "retry":
      return step(activity, retryWords(event.data), event.ts);
    case "thinking":
    case "thinking_delta":
      return step(activity, THINKING, event.ts);
    case "assistant":
      return step(activity, WRITING, event.ts);
    case "flow":
      return activity;
  }
}

export function onChatEvent(activity: Activity, event: ChatEvent, nowMs: number): Activity {
  return event.state === "delta" ? step(activity, WRITING, nowMs) : IDLE;
}

type Row = Pick<ListedRow, "state" | "queuedRuns" | "waitingOn" | "jobs">;

/** Returns the line, which is empty if the session is idle. */
export function activityLine(activity: Activity, row: Row | undefined, nowMs: number): string {
  const { state = "idle", queuedRuns = 0, waitingOn = [], jobs } = row ?? {};
  const running = jobs?.running ?? 0;
  const work = activity.kind === "working" ? [activity.step, age(activity.sinceMs, nowMs)] : [];
  const parts = [
    ...(work.length === 0 && state !== "idle" ? [state] : work),
    ...(running > 0 ? [`${count(running, "sub-agent")} running`] : []),
    ...(waitingOn.length > 0 ? [`waiting for ${waitingOn.join(", ")}`] : []),
    ...(queuedRuns > 0 ? [`${queuedRuns} queued`] : []),
  ];
  return safeLine(parts.join(" · "));
}
