// The events that are sent to web hooks, and the body of each. docs/OUTGOING.md publishes their names and
// fields: new fields may be added, but existing ones never change. Credentials are redacted as in live events
// (I14).

import { optional } from "../../core/optional.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import { agentIdInKey } from "../../core/shapes/session-key.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { HOOK_EVENTS } from "./settings.ts";

/** Must be increased by a change that breaks existing receivers. */
export const HOOK_VERSION = 1;

export interface HookEvent {
  readonly type: (typeof HOOK_EVENTS)[number];
  readonly sessionKey: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const TEXT_CHARS_MAX = 16_000;
const ERROR_CHARS_MAX = 2_000;

function maskedError(error: string | undefined, redactor: Redactor): string | undefined {
  return error === undefined ? undefined : redactor.beginning(error, ERROR_CHARS_MAX).text;
}

function base(sessionKey: string): Record<string, unknown> {
  const agentId = agentIdInKey(sessionKey);
  return { sessionKey, ...optional({ agentId }) };
}

type Of<K extends LiveEvent["kind"]> = Extract<LiveEvent, { kind: K }>;

function runEnded(event: Of<"run_ended">, redactor: Redactor): HookEvent | undefined {
  const { sessionKey, runId, chainId, state, code, usage, startedAt, endedAt, flowStep, takenBy } = event;
  // The message was appended between runs, so no run has ended.
  if (startedAt === undefined && takenBy === undefined && state === "ok" && event.text === "")
    return undefined;
  const { text, whole } = redactor.beginning(event.text, TEXT_CHARS_MAX);
  const textTruncated = whole ? undefined : true;
  const facts = optional({
    code,
    error: maskedError(event.error, redactor),
    startedAt,
    flowStep,
    takenBy,
    textTruncated,
  });
  const data = { ...base(sessionKey), runId, chainId, status: state, text, usage, endedAt, ...facts };
  return { type: "run.ended", sessionKey, data };
}

function sessionChanged({ sessionKey, change, archived }: Of<"session">): HookEvent | undefined {
  if (change === "state" || (change === "updated" && archived !== true)) return undefined;
  const type = change === "updated" ? "session.archived" : (`session.${change}` as const);
  return { type, sessionKey, data: base(sessionKey) };
}

/**
 * Returns the web hook body of a live event. Returns undefined for most events, which are not sent to web
 * hooks.
 */
export function hookEventOf(event: LiveEvent, redactor: Redactor): HookEvent | undefined {
  switch (event.kind) {
    case "run_ended":
      return runEnded(event, redactor);
    case "session":
      return sessionChanged(event);
    case "delivery": {
      const { sessionKey, deliveryId, runId, what, state, code, channel, to } = event;
      if (state === "sent" && what !== "announce") return undefined;
      const facts = optional({ runId, code, error: maskedError(event.error, redactor) });
      const data = { ...base(sessionKey), deliveryId, kind: what, channel, to, ...facts };
      return { type: state === "sent" ? "announcement.delivered" : "delivery.failed", sessionKey, data };
    }
    default:
      return undefined;
  }
}
