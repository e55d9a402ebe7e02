// Translates live events into the protocol's events.
// E1: reply and announce turns cause no `chat` events and no text events, only lifecycle events.
// Credential-like text is redacted (I14) before it is cut.
// An event that names another session also has a form without that name (I9).

import type {
  AgentEvent,
  ChatEvent,
  ChatMessage,
  EventOf,
  EventPayloads,
  FlowData,
  LifecycleData,
  ToolData,
} from "../../contract/events.ts";
import { optional } from "../../core/optional.ts";
import type { Pace } from "../../core/pace.ts";
import { isQuietStep } from "../../core/rules/turn-rules.ts";
import { NOT_VISIBLE } from "../../core/rules/visibility.ts";
import type { LiveEvent, LiveTextEvent } from "../../core/shapes/event.ts";
import { type Message, textOf } from "../../core/shapes/message.ts";
import { asAnswerable } from "../../core/shapes/permission.ts";
import { lastPlace } from "../../core/shapes/route.ts";
import { textsIn } from "../../core/text/history-cut.ts";
import { type Hide, LONG_CHARS, type Redactor } from "../../core/text/redact/redact.ts";
import { approvalShown, decisionShown, identityShown } from "../version-4/chat-forms.ts";
import { type LiveTexts, textMarks } from "./live-texts.ts";
import type { LiveThinking } from "./live-thinking.ts";
import type { EventMarks } from "./outlet.ts";
import type { RunTracks } from "./run-tracks.ts";

/** An event of the protocol, and its session. */
export type OutEvent = EventOf & {
  readonly sessionKey: string;
  /**
   * The right that a subscriber needs. `deliveries` needs the scope operator.admin, `messages` protocol
   * version 4, `approvals` that version and the right to answer. Default: `events`.
   */
  readonly access?: "deliveries" | "messages" | "approvals";
  /** The other session that the payload names, and the event for subscribers who may not see it. */
  readonly other?: {
    readonly sessionKey: string;
    readonly without: AgentEvent | EventPayloads["message.receipt"];
  };
  /** The event for subscribers whose token covers only some sessions. Default: the same. */
  readonly limited?: EventPayloads["exec.approval.requested"];
  /**
   * Key of a session. Subscribers who may see that session do not get this event, because they get another
   * one.
   */
  readonly unless?: string;
  readonly marks?: EventMarks;
};

type Of<K extends LiveEvent["kind"]> = Extract<LiveEvent, { kind: K }>;
type OfRun = { readonly runId: string; readonly sessionKey: string };

/** Maximum characters of a tool result in an event; the transcript has the whole result. */
const RESULT_MAX_CHARS = 16_000;
const THOUGHT_MAX_CHARS = 16_000;
const MESSAGE_MAX_CHARS = 16_000;
const CHAT_STATES = { ok: "final", error: "error", timeout: "error", aborted: "aborted" } as const;
const STOP_REASONS = { ok: "stop", error: "error", timeout: "timeout", aborted: "aborted" } as const;

export interface TranslatorParts {
  readonly redactor: Redactor;
  readonly runs: RunTracks;
  readonly texts: LiveTexts;
  readonly thinking: LiveThinking;
  /** Returns whether a client gets `session.message` for this session. */
  wantsMessages(sessionKey: string): boolean;
}

/** An event with more characters than this is redacted in steps. */
const STEP_CHARS = 4 * LONG_CHARS;

/** Returns the texts of an event that the translation redacts as a whole. */
function wholeTexts(event: LiveEvent): readonly string[] {
  switch (event.kind) {
    case "text":
    case "thinking":
    case "run_ended":
    case "flow":
    case "delivered":
      return [event.text];
    case "message":
      return isNote(event.message) ? [textOf(event.message)] : [];
    case "tool":
      return [...textsIn(event.arguments)];
    default:
      return [];
  }
}

/** Returns whether an event must be redacted in steps, because one step would take long. */
export function isLong(event: LiveEvent): boolean {
  return wholeTexts(event).reduce((sum, { length }) => sum + length, 0) > STEP_CHARS;
}

/** Splits the change of a long text. */
export function* piecesOf(event: LiveTextEvent): Generator<LiveTextEvent> {
  for (let at = 0; at < event.text.length; at += LONG_CHARS)
    yield { ...event, offset: event.offset + at, text: event.text.slice(at, at + LONG_CHARS) };
}

/** The event of a feature, which has the form of its contract. */
const featureEvent = ({ event, sessionKey, payload, isForAdmins }: Of<"feature">) =>
  ({ event, sessionKey, payload, ...(isForAdmins && { access: "deliveries" }) }) as unknown as OutEvent;

/** Translates the events of one gateway, in their order. */
export class Translator {
  readonly #runs: RunTracks;
  readonly #redactor: Redactor;
  readonly #texts: LiveTexts;
  readonly #thinking: LiveThinking;
  readonly #wantsMessages: TranslatorParts["wantsMessages"];

  constructor({ redactor, runs, texts, thinking, wantsMessages }: TranslatorParts) {
    this.#wantsMessages = wantsMessages;
    this.#redactor = redactor;
    this.#runs = runs;
    this.#texts = texts;
    this.#thinking = thinking;
  }

  /** Redacts the texts of a long event in steps. Returns the redaction for `translate`. */
  async readAhead(event: Exclude<LiveEvent, LiveTextEvent>, pace: Pace): Promise<Hide> {
    const known = new Map<string, string>();
    if (event.kind === "run_ended") {
      if (!this.#isQuiet(event)) for (const _ of this.#texts.readAhead(event)) await pace();
    } else for (const text of wholeTexts(event)) known.set(text, await this.#redactor.whole(text));
    return (text) => known.get(text) ?? this.#redactor.mask(text);
  }

  /**
   * Translates an event. `hide` redacts its texts. Live text and thinking are handled by `LiveTexts` and
   * `LiveThinking`.
   */
  translate(
    event: Exclude<LiveEvent, LiveTextEvent>,
    hide: Hide = (text) => this.#redactor.mask(text),
  ): OutEvent[] {
    switch (event.kind) {
      case "run_started": {
        const { chainId, startedAt, flowStep } = event;
        this.#runs.begin(event);
        const data: LifecycleData = { phase: "start", chainId, startedAt, ...optional({ flowStep }) };
        return this.#agent(event, startedAt, { stream: "lifecycle", data });
      }
      case "retry": {
        const { error, ...retry } = event.retry;
        const data = { ...retry, error: this.#redactor.mask(error) };
        return this.#agent(event, event.atMs, { stream: "retry", data });
      }
      case "tool":
        if (event.phase === "start") {
          this.#texts.complete(event.runId);
          this.#thinking.end(event.runId);
        }
        return this.#agent(event, event.atMs, {
          stream: "tool",
          data: toolData(event, this.#redactor, hide),
        });
      case "message":
        return [...this.#note(event, hide), ...this.#translateMessage(event)];
      case "run_ended":
        return this.#translateEnd(event);
      case "flow": {
        const { sessionKey, from, to } = event;
        const data = flowData(event, hide);
        const [told] = this.#agent(event, event.atMs, { stream: "flow", data });
        const other = from === sessionKey ? to : from;
        if (other === sessionKey) return [told];
        const hidden = { ...data, [from === sessionKey ? "to" : "from"]: NOT_VISIBLE };
        const without = { ...told.payload, stream: "flow" as const, data: hidden };
        return [{ ...told, other: { sessionKey: other, without } }];
      }
      case "delivered": {
        if (this.#runs.takeNote(event.sessionKey, event.text)) return [];
        const body = { message: chatMessage(hide(event.text), event.atMs), stopReason: "delivered" };
        return this.#chat(
          { runId: event.runId ?? event.deliveryId, sessionKey: event.sessionKey },
          { state: "final", ...body },
        );
      }
      case "delivery":
        // This change is not sent as an event: subscribers get `outbox` events, and programs use web hooks.
        return [];
      case "permission":
        // For clients of version 4. Others get the event `attention` instead.
        return permissionEvents(event);
      case "receipt":
        return receiptEvents(event);
      case "outbox": {
        const { deliveryId: id, sessionKey, state } = event;
        const about = { sessionKey, access: "deliveries", marks: { replaces: `delivery:${id}` } } as const;
        return [{ event: "deliveries", payload: { id, sessionKey, state }, ...about }];
      }
      case "session":
        return [sessionEvent(event)];
      case "feature":
        return [featureEvent(event)];
    }
  }

  #agent(
    { runId, sessionKey }: OfRun,
    ts: number,
    body: AgentBody,
    marks: EventMarks = { follows: textMarks(runId) },
  ): [OutEvent & { payload: AgentEvent }] {
    const payload = { runId, sessionKey, seq: this.#runs.next(runId), ts, ...body } as AgentEvent;
    return [{ event: "agent", sessionKey, payload, marks }];
  }

  #chat(
    { runId, sessionKey }: OfRun,
    body: Omit<ChatEvent, "runId" | "sessionKey" | "seq">,
    marks: OutEvent["marks"] = { follows: textMarks(runId) },
  ): (OutEvent & { payload: ChatEvent })[] {
    const payload: ChatEvent = { runId, sessionKey, seq: this.#runs.next(runId), ...body };
    return [{ event: "chat", sessionKey, payload, marks }];
  }

  #translateEnd(event: Of<"run_ended">): OutEvent[] {
    const { runId, state, chainId, startedAt, endedAt, flowStep, code } = event;
    // A run that ends with `ok` but never started has only appended its input to the transcript. It has no
    // reply that somebody waits for.
    const appended = !this.#runs.has(runId) && state === "ok" && event.text === "";
    const quiet = this.#isQuiet(event);
    const error = event.error === undefined ? undefined : this.#redactor.mask(event.error);
    this.#thinking.end(runId);
    const text = this.#texts.end(quiet ? { ...event, text: "" } : event);
    const phase = state === "ok" ? "end" : "error";
    const facts = optional({ startedAt, flowStep, code, error });
    const data: LifecycleData = { phase, chainId, state, endedAt, ...facts };
    const marks = { settles: textMarks(runId) };
    const lifecycle = this.#agent(event, endedAt, { stream: "lifecycle", data }, marks);
    const body = {
      state: CHAT_STATES[state],
      ...optional({ errorMessage: error, code }),
      usage: event.usage,
      stopReason: STOP_REASONS[state],
      // An empty reply is a final event without a message.
      ...(text === undefined ? {} : { message: chatMessage(text, endedAt) }),
    };
    const chat = appended || quiet ? [] : this.#chat(event, body, marks);
    this.#runs.end(runId);
    return [...lifecycle, ...chat];
  }

  #isQuiet({ runId, flowStep }: Of<"run_ended">): boolean {
    return this.#runs.isQuiet(runId) || isQuietStep(flowStep);
  }

  /**
   * Translates a message outside of a turn: an operator's note, or the transcript row of a sent text. A note
   * of the runtime about refused parts comes during a turn, and is not a part of its answer.
   */
  #note({ sessionKey, message, runId }: Of<"message">, hide: Hide): OutEvent[] {
    const isOmission = message.role === "assistant" && message.omits !== undefined;
    if (isOmission && this.#runs.isQuiet(runId)) return [];
    if (this.#runs.has(runId) && !isOmission) return this.#thought(runId, sessionKey, message);
    if (!isNote(message)) return [];
    const text = textOf(message);
    this.#runs.noteShown(sessionKey, text);
    const body = { message: chatMessage(hide(text), message.timestamp), stopReason: "injected" };
    const ofRun = { runId: isOmission ? message.id : (runId ?? message.id), sessionKey };
    return this.#chat(ofRun, { state: "final", ...body });
  }

  /** Translates a stored message for clients of version 4. */
  #translateMessage(event: Of<"message">): OutEvent[] {
    const { sessionKey, sessionId, runId, route, message } = event;
    const { id: messageId, role, timestamp } = message;
    if (!this.#wantsMessages(sessionKey) || this.#runs.isQuiet(runId)) return [];
    if (role !== "user" && role !== "assistant") return [];
    const { text } = this.#redactor.beginning(textOf(message), MESSAGE_MAX_CHARS);
    if (text === "") return [];
    const content = [{ type: "text" as const, text }];
    const stopReason = role === "assistant" ? message.stopReason : undefined;
    const stored = {
      role,
      content,
      timestamp,
      ...identityShown(message, runId),
      ...optional({ stopReason }),
    };
    const payload = { sessionKey, sessionId, messageId, ...lastPlace(route), message: stored };
    return [{ event: "session.message", sessionKey, payload, access: "messages" }];
  }

  #thought(runId: string | undefined, sessionKey: string, message: Message): OutEvent[] {
    if (runId === undefined || message.role !== "assistant" || this.#runs.isQuiet(runId)) return [];
    this.#thinking.end(runId);
    const thoughts = message.content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
    const text = this.#redactor.beginning(thoughts.join("\n"), THOUGHT_MAX_CHARS).text;
    return text.trim() === ""
      ? []
      : this.#agent({ runId, sessionKey }, message.timestamp, { stream: "thinking", data: { text } });
  }
}

const isNote = (message: Message): boolean =>
  message.role === "assistant" && message.stopReason === "injected";

/** Returns a message with this redacted text. */
function chatMessage(text: string, timestamp: number): ChatMessage {
  return { role: "assistant", content: [{ type: "text", text }], timestamp };
}

type AgentBody = {
  [S in AgentEvent["stream"]]: Pick<Extract<AgentEvent, { stream: S }>, "stream" | "data">;
}[AgentEvent["stream"]];

function toolData(event: Of<"tool">, redactor: Redactor, hide: Hide): ToolData {
  const { callId, name, isError, result } = event;
  return {
    phase: event.phase === "start" ? "start" : "result",
    toolCallId: callId,
    name,
    ...(event.arguments === undefined ? {} : { args: redactor.json(event.arguments, hide) }),
    ...optional({ isError }),
    ...(result === undefined ? {} : { result: redactor.beginning(result, RESULT_MAX_CHARS).text }),
  };
}

function flowData(event: Of<"flow">, hide: Hide): FlowData {
  const { flowId, step, from, to, turn, turnsMax, reason } = event;
  // In a refused step `to` may be an argument of the call, which is text of an agent.
  const named = step === "refused" ? hide(to) : to;
  const text = hide(event.text);
  return { flowId, step, from, to: named, turn, turnsMax, text, ...optional({ reason }) };
}

function permissionEvents(event: Of<"permission">): OutEvent[] {
  const { id, sessionKey } = event;
  if (event.change === "refused") return [];
  const told = { sessionKey, access: "approvals" } as const;
  if (event.change === "asked") {
    const limited = approvalShown(asAnswerable(event.question, false));
    return [{ ...told, event: "exec.approval.requested", payload: approvalShown(event.question), limited }];
  }
  const decision = event.answer && decisionShown(event.answer);
  return [{ ...told, event: "exec.approval.resolved", payload: { id, ...optional({ decision }) } }];
}

/**
 * Returns one event for subscribers who may see the recipient, and one for those who may see only the sender.
 */
function receiptEvents({ runId, sessionKey, from, state, atMs, code }: Of<"receipt">): OutEvent[] {
  const payload = { messageId: runId, from, to: sessionKey, state, at: atMs, ...optional({ code }) };
  const base = { event: "message.receipt", marks: { replaces: `receipt:${runId}` } } as const;
  const hidden = { ...payload, from: NOT_VISIBLE };
  const toRecipient = { ...base, sessionKey, payload, other: { sessionKey: from, without: hidden } };
  if (from === sessionKey) return [{ ...base, sessionKey, payload }];
  const toSender = {
    ...base,
    sessionKey: from,
    payload: { ...payload, to: NOT_VISIBLE },
    unless: sessionKey,
  };
  return [toRecipient, toSender];
}

function sessionEvent({ sessionKey, change }: Of<"session">): OutEvent {
  const base = { event: "sessions", sessionKey, payload: { key: sessionKey, change } } as const;
  // If the state changed several times, only the newest change is sent. The row has the current state.
  return change === "state" ? { ...base, marks: { replaces: `state:${sessionKey}` } } : base;
}
