// Owns the translation of live events into the protocol's events.
// E1: reply and announce turns give no `chat` events and no text: only their lifecycle is seen (SPEC 4).
// E2: `seq` rises within a run, over a restart of the gateway too.
// E3: credential-like text is masked on the way out (I14).

import type { LiveEvent } from "../core/event.ts";
import { textOf } from "../core/message.ts";
import { redactSecrets } from "../core/redact.ts";
import type { FlowStep } from "../core/run.ts";
import type {
  AgentEvent,
  ChatEvent,
  ChatMessage,
  EventName,
  LifecycleData,
  SessionsEvent,
} from "./protocol.ts";

/** An event of the protocol, and whose session it is about. */
export interface OutEvent {
  readonly event: EventName;
  readonly sessionKey: string;
  readonly payload: ChatEvent | AgentEvent | SessionsEvent;
  readonly replaces?: string;
  readonly settles?: readonly string[];
}

type Of<K extends LiveEvent["kind"]> = Extract<LiveEvent, { kind: K }>;

interface RunTrack {
  seq: number;
  readonly flowStep?: FlowStep | undefined;
}

/** Characters of a tool result that an event carries; the transcript has all of it. */
const RESULT_MAX_CHARS = 16_000;
const PAST_RUNS_MAX = 1_000;
const NOTES_MAX = 200;

export type Translate = (event: LiveEvent) => OutEvent[];

function say(text: string, timestamp: number): ChatMessage {
  return { role: "assistant", content: [{ type: "text", text: redactSecrets(text) }], timestamp };
}

function masked(value: unknown): unknown {
  if (value === undefined) return undefined;
  try {
    return JSON.parse(redactSecrets(JSON.stringify(value)));
  } catch {
    // Masking may cut through an escape; then the text is shown as text.
    return redactSecrets(JSON.stringify(value));
  }
}

function isQuiet(step: FlowStep | undefined): boolean {
  return step === "reply" || step === "announce";
}

/** `now` is the gateway's clock; runs that started before `since` are resumed ones. */
export function createTranslator(now: () => number): Translate {
  const since = now();
  const runs = new Map<string, RunTrack>();
  /** The last number of runs that have ended: a flow tells about them a little longer. */
  const past = new Map<string, number>();
  const notes = createNotes();

  const track = (
    runId: string,
    started?: { startedAt?: number | undefined; flowStep?: FlowStep | undefined },
  ) => {
    const known = runs.get(runId);
    if (known !== undefined) return known;
    // A run that began in an earlier process has used up numbers; no run makes a thousand events a second.
    const startedAt = started?.startedAt ?? since;
    const made: RunTrack = { seq: startedAt < since ? now() - startedAt : 0, flowStep: started?.flowStep };
    runs.set(runId, made);
    return made;
  };
  const next = (runId: string): number => {
    const live = runs.get(runId);
    if (live !== undefined) return ++live.seq;
    const seq = (past.get(runId) ?? 0) + 1;
    remember(runId, seq);
    return seq;
  };
  const remember = (runId: string, seq: number): void => {
    past.delete(runId);
    past.set(runId, seq);
    const [oldest] = past.keys();
    if (past.size > PAST_RUNS_MAX && oldest !== undefined) past.delete(oldest);
  };
  const agent = (event: { runId: string; sessionKey: string }, ts: number) => ({
    runId: event.runId,
    sessionKey: event.sessionKey,
    seq: next(event.runId),
    ts,
  });

  const text = (event: Of<"text">): OutEvent[] => {
    const { runId, sessionKey } = event;
    if (isQuiet(track(runId).flowStep)) return [];
    const message = say(event.text, now());
    const shown = message.content[0]?.text ?? "";
    return [
      {
        event: "agent",
        sessionKey,
        payload: { ...agent(event, now()), stream: "assistant", data: { text: shown } },
        replaces: `text:${runId}`,
      },
      {
        event: "chat",
        sessionKey,
        payload: { runId, sessionKey, seq: next(runId), state: "delta", message },
        replaces: `chat:${runId}`,
      },
    ];
  };

  const ended = (event: Of<"run_ended">): OutEvent[] => {
    const { runId, sessionKey } = event;
    const appended = !runs.has(runId) && event.state === "ok" && event.text === "";
    const { flowStep } = track(runId, event);
    const data = lifecycleEnd(event);
    const settles = [`text:${runId}`, `chat:${runId}`];
    const out: OutEvent[] = [
      {
        event: "agent",
        sessionKey,
        payload: { ...agent(event, event.endedAt), stream: "lifecycle", data },
        settles,
      },
    ];
    // A run that never started and ended well only appended its input: nobody waits for its reply.
    if (!appended && !isQuiet(event.flowStep ?? flowStep)) {
      out.push({ event: "chat", sessionKey, payload: chatEnd(event, next(runId)), settles });
    }
    remember(runId, runs.get(runId)?.seq ?? 0);
    runs.delete(runId);
    return out;
  };

  return (event: LiveEvent): OutEvent[] => {
    switch (event.kind) {
      case "run_started": {
        const { sessionKey, chainId, startedAt, flowStep } = event;
        track(event.runId, event);
        const step = flowStep === undefined ? {} : { flowStep };
        const data: LifecycleData = { phase: "start", chainId, startedAt, ...step };
        const payload: AgentEvent = { ...agent(event, startedAt), stream: "lifecycle", data };
        return [{ event: "agent", sessionKey, payload }];
      }
      case "text":
        return text(event);
      case "tool":
        return [
          {
            event: "agent",
            sessionKey: event.sessionKey,
            payload: toolEvent(event, agent(event, event.atMs)),
          },
        ];
      case "message":
        return runs.has(event.runId ?? "") ? [] : notes.written(event);
      case "run_ended":
        return ended(event);
      case "flow":
        return [
          {
            event: "agent",
            sessionKey: event.sessionKey,
            payload: flowEvent(event, agent(event, event.atMs)),
          },
        ];
      case "delivered":
        return notes.delivered(event);
      case "session":
        return [sessionEvent(event)];
    }
  };
}

function lifecycleEnd(event: Of<"run_ended">): LifecycleData {
  const { chainId, state, endedAt, startedAt, flowStep, code, error } = event;
  return {
    phase: state === "ok" ? "end" : "error",
    chainId,
    state,
    endedAt,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(flowStep === undefined ? {} : { flowStep }),
    ...(code === undefined ? {} : { code }),
    ...(error === undefined ? {} : { error: redactSecrets(error) }),
  };
}

const CHAT_STATES = { ok: "final", error: "error", timeout: "error", aborted: "aborted" } as const;
const STOP_REASONS = { ok: "stop", error: "error", timeout: "timeout", aborted: "aborted" } as const;

/** Silence is a final event without a message. */
function chatEnd(event: Of<"run_ended">, seq: number): ChatEvent {
  const { runId, sessionKey, state, code, error } = event;
  return {
    runId,
    sessionKey,
    seq,
    state: CHAT_STATES[state],
    ...(event.text === "" ? {} : { message: say(event.text, event.endedAt) }),
    ...(error === undefined ? {} : { errorMessage: redactSecrets(error) }),
    ...(code === undefined ? {} : { code }),
    usage: event.usage,
    stopReason: STOP_REASONS[state],
  };
}

function toolEvent(
  event: Of<"tool">,
  base: Pick<AgentEvent, "runId" | "sessionKey" | "seq" | "ts">,
): AgentEvent {
  const { callId, name, isError, result } = event;
  const data = {
    phase: event.phase === "start" ? ("start" as const) : ("result" as const),
    toolCallId: callId,
    name,
    ...(event.arguments === undefined ? {} : { args: masked(event.arguments) }),
    ...(isError === undefined ? {} : { isError }),
    ...(result === undefined ? {} : { result: redactSecrets(result.slice(0, RESULT_MAX_CHARS)) }),
  };
  return { ...base, stream: "tool", data };
}

function flowEvent(
  event: Of<"flow">,
  base: Pick<AgentEvent, "runId" | "sessionKey" | "seq" | "ts">,
): AgentEvent {
  const { flowId, step, from, to, turn, turnsMax, reason } = event;
  const text = redactSecrets(event.text);
  const data = { flowId, step, from, to, turn, turnsMax, text, ...(reason === undefined ? {} : { reason }) };
  return { ...base, stream: "flow", data };
}

/** Text that no run of its own gives a final event for: an operator's note, and what reached a webchat route. */
function createNotes() {
  /** Notes that were shown when they were written, so that their delivery doesn't show them again. */
  const shown = new Set<string>();
  const markOf = (sessionKey: string, text: string): string => `${sessionKey}\n${text}`;
  const final = (sessionKey: string, runId: string, message: ChatMessage, stopReason: string): OutEvent[] => {
    const payload: ChatEvent = { runId, sessionKey, seq: 1, state: "final", message, stopReason };
    return [{ event: "chat", sessionKey, payload }];
  };
  return {
    written({ sessionKey, message, runId }: Of<"message">): OutEvent[] {
      if (message.role !== "assistant" || message.stopReason !== "injected") return [];
      const text = textOf(message);
      shown.add(markOf(sessionKey, text));
      const [oldest] = shown;
      if (shown.size > NOTES_MAX && oldest !== undefined) shown.delete(oldest);
      return final(sessionKey, runId ?? message.id, say(text, message.timestamp), "injected");
    },
    delivered({ sessionKey, deliveryId, runId, text, atMs }: Of<"delivered">): OutEvent[] {
      if (shown.delete(markOf(sessionKey, text))) return [];
      return final(sessionKey, runId ?? deliveryId, say(text, atMs), "delivered");
    },
  };
}

function sessionEvent(event: Of<"session">): OutEvent {
  const { sessionKey, change } = event;
  const payload: SessionsEvent = { key: sessionKey, change };
  const base = { event: "sessions", sessionKey, payload } as const;
  // Of many changes of state only the newest is news; the row says what it is now.
  return change === "state" ? { ...base, replaces: `state:${sessionKey}` } : base;
}
