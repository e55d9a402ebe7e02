// Owns what a program outside is told of an event: which ones there are, and the body of each.
// HE1: names, fields and their meaning are published (docs/WEBHOOKS.md): fields are added, none is changed.
// HE2: what looks like a credential is masked, as in live events (I14).

import type { LiveEvent } from "./event.ts";
import { optional } from "./optional.ts";
import { redactSecrets } from "./redact.ts";
import { agentIdInKey } from "./session-key.ts";
import type { HookEventType } from "./settings.ts";

/** Changes when an existing reader would have to. */
export const HOOK_VERSION = 1;

export interface HookEvent {
  readonly type: HookEventType;
  readonly sessionKey: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const TEXT_CHARS_MAX = 16_000;
const ERROR_CHARS_MAX = 2_000;

/** Masked before it is cut: half a credential looks like none. */
function masked(text: string, charsMax: number): { readonly text: string; readonly isCut: boolean } {
  const whole = redactSecrets(text);
  return { text: whole.slice(0, charsMax).toWellFormed(), isCut: whole.length > charsMax };
}

function maskedError(error: string | undefined): string | undefined {
  return error === undefined ? undefined : masked(error, ERROR_CHARS_MAX).text;
}

function base(sessionKey: string): Record<string, unknown> {
  const agentId = agentIdInKey(sessionKey);
  return { sessionKey, ...optional({ agentId }) };
}

type Of<K extends LiveEvent["kind"]> = Extract<LiveEvent, { kind: K }>;

function runEnded(event: Of<"run_ended">): HookEvent | undefined {
  // A message was appended between runs: nothing was run.
  if (event.startedAt === undefined && event.state === "ok" && event.text === "") return undefined;
  const { sessionKey, runId, chainId, state, code, usage, startedAt, endedAt, flowStep } = event;
  const { text, isCut } = masked(event.text, TEXT_CHARS_MAX);
  const textTruncated = isCut ? true : undefined;
  const facts = optional({ code, error: maskedError(event.error), startedAt, flowStep, textTruncated });
  const data = { ...base(sessionKey), runId, chainId, status: state, text, usage, endedAt, ...facts };
  return { type: "run.ended", sessionKey, data };
}

const SESSION_CHANGES = {
  created: "session.created",
  reset: "session.reset",
  deleted: "session.deleted",
} as const;

function sessionChanged({ sessionKey, change, archived }: Of<"session">): HookEvent | undefined {
  const data = base(sessionKey);
  if (change === "updated")
    return archived === true ? { type: "session.archived", sessionKey, data } : undefined;
  return change === "state" ? undefined : { type: SESSION_CHANGES[change], sessionKey, data };
}

function settled(event: Of<"delivery">): HookEvent | undefined {
  const { sessionKey, deliveryId, runId, what, state, code, channel, to } = event;
  if (state === "sent" && what !== "announce") return undefined;
  const facts = optional({ runId, code, error: maskedError(event.error) });
  const data = { ...base(sessionKey), deliveryId, kind: what, channel, to, ...facts };
  return { type: state === "sent" ? "announcement.delivered" : "delivery.failed", sessionKey, data };
}

/** What programs are told of a live event; of most, nothing. */
export function hookEventOf(event: LiveEvent): HookEvent | undefined {
  switch (event.kind) {
    case "run_ended":
      return runEnded(event);
    case "session":
      return sessionChanged(event);
    case "delivery":
      return settled(event);
    default:
      return undefined;
  }
}
