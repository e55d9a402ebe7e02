// Owns the types of method answers and event payloads, shared by the gateway and its clients.
// `Method` requires these types, so every method has exactly one kind of answer.

import type { ChainParty, ChainRow, ChainStep } from "../core/shapes/chain-step.ts";
import type { Explanation } from "../core/shapes/explanation.ts";
import type { Message, Provenance } from "../core/shapes/message.ts";
import type { Route } from "../core/shapes/route.ts";
import type { RunFacts, RunState } from "../core/shapes/run.ts";
import type { Session, SessionKind, SessionState } from "../core/shapes/session.ts";
import type { AgentToAgentSettings, VisibilityMode } from "../core/shapes/settings/settings.ts";
import type { Health } from "./methods/operations.ts";
import type { METHODS, MethodName } from "./methods.ts";
import type {
  AgentEvent,
  ChatEvent,
  CronEvent,
  DeliveriesEvent,
  NodeInvokeCancel,
  NodeInvokeRequest,
  NodePairRequested,
  NodePairResolved,
  PresenceEntry,
  SessionsEvent,
  ShutdownEvent,
} from "./protocol.ts";
import type { Of, Schema } from "./schema.ts";

interface Preview {
  readonly key: string;
  readonly status: "ok" | "empty" | "missing";
  readonly items: readonly { readonly role: string; readonly text: string }[];
}

/** A run as a reader of its session's transcript sees it; `usage` once it has ended. */
export type RunRow = Omit<RunFacts, "runId">;

/** A message that waits in the lane. */
export interface QueuedRun {
  readonly runId: string;
  /** Its beginning, if the text is long. */
  readonly text?: string;
  readonly provenance?: Provenance;
  readonly senderName?: string;
}

/** The session beside the newest page of its transcript. */
export interface HistoryNow {
  readonly session: ListedRow;
  /** The first pending runs, in order; `session.queuedRuns` is their total. */
  readonly queue: readonly QueuedRun[];
}

/** A conversation that a reset has ended. */
export interface EarlierRow {
  readonly sessionId: string;
  /** When the conversation began. */
  readonly startedAt: number;
  /** When its last message was written. */
  readonly endedAt: number;
  /** Number of messages. */
  readonly messages: number;
  /** The beginning of its first message. */
  readonly title?: string;
}

interface HistoryPage {
  readonly sessionKey: string;
  /** The messages' conversation. Absent: the key is unused, and the first message starts the conversation. */
  readonly sessionId?: string;
  /** Oldest first; with `includeRuns` each names its run, if it has one. */
  readonly messages: readonly (Message & { readonly runId?: string })[];
  readonly thinkingLevel: string;
  /** For `before`: the previous page. Absent on the first page of the transcript. */
  readonly nextBefore?: string;
  /** For `after`: the next page. Absent on the newest page. */
  readonly nextAfter?: string;
  /** With `includeRuns`: the runs of these messages, and on the newest page the unfinished ones. */
  readonly runs?: Readonly<Record<string, RunRow>>;
  /**
   * With `includeRuns`: by message id, when the model began to read a summary in place of everything before
   * that message.
   */
  readonly compactions?: Readonly<Record<string, number>>;
  /** With `includeRuns`, on the newest page. */
  readonly now?: HistoryNow;
}

export interface WaitAnswer {
  readonly runId: string;
  /** `timeout`: the wait ended, the run continues. */
  readonly status: "ok" | "error" | "timeout";
  readonly runStatus: RunState;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly error?: string;
  readonly code?: string;
}

interface ExplainedSession {
  readonly key: string;
  readonly exists: boolean;
  readonly agentId?: string;
  readonly archived?: true;
}

/** A session as `sessions.list` and `sessions.patch` show it. Unset fields are absent. */
export interface SessionRow
  extends Pick<
    Session,
    | "key"
    | "agentId"
    | "createdAt"
    | "updatedAt"
    | "sessionId"
    | "contextUsed"
    | "cost"
    | "inputTokens"
    | "outputTokens"
    | "totalTokens"
    | "systemSent"
    | "abortedLastRun"
  > {
  readonly kind: "direct" | "group" | "global";
  readonly sessionKind: SessionKind;
  readonly channel: string;
  readonly modelProvider: string;
  readonly model: string;
  /** Null: the model is unknown. */
  readonly contextTokens: number | null;
  readonly label: string | undefined;
  readonly displayName: string | undefined;
  readonly archivedAt: number | undefined;
  readonly thinkingLevel: string | undefined;
  readonly verboseLevel: string | undefined;
  readonly sendPolicy: Session["sendPolicy"] | undefined;
  readonly spawnedBy: string | undefined;
  readonly lastChannel?: string;
  readonly lastTo?: string;
  readonly lastAccountId?: string | undefined;
  /** The same destination in full, with its thread. */
  readonly deliveryContext?: Route;
}

export interface ListedRow extends SessionRow {
  readonly state: SessionState;
  readonly queuedRuns: number;
  /** If it waits: the sessions of the runs that it waits for, as far as the caller sees them. */
  readonly waitingOn?: readonly string[];
  /** With `includeChildren`: the number of sessions that it spawned, at most 1000. */
  readonly children?: number;
  readonly derivedTitle?: string;
  readonly lastMessagePreview?: string;
}

interface SessionsPage {
  readonly ts: number;
  readonly path: string;
  readonly count: number;
  readonly defaults: {
    readonly modelProvider: string;
    readonly model: string;
    readonly contextTokens: number | null;
  };
  readonly sessions: readonly ListedRow[];
  readonly nextCursor?: string;
}

/** The payload of each event, when it is sent, and to whom. */
export interface EventPayloads {
  /** The text of a run so far, and its end, for a chat window: to those who may see the session. */
  readonly chat: ChatEvent;
  /** Everything in a run: start, text, thoughts, tools, steps of a conversation, end. To the same. */
  readonly agent: AgentEvent;
  /**
   * A session was created, changed, reset or deleted, or a run of it was accepted, started, waits or ended.
   */
  readonly sessions: SessionsEvent;
  /** A row of the outbox has changed: to operator.admin. */
  readonly deliveries: DeliveriesEvent;
  /** A scheduled job has changed or run: to those who may see its session. */
  readonly cron: CronEvent;
  /** A device requests pairing: to operator.admin. */
  readonly "node.pair.requested": NodePairRequested;
  /** The request was decided, or a device was unpaired: to operator.admin. */
  readonly "node.pair.resolved": NodePairResolved;
  /** A command: to its node. */
  readonly "node.invoke.request": NodeInvokeRequest;
  /** The command is no longer needed: to its node. */
  readonly "node.invoke.cancel": NodeInvokeCancel;
  /** A client connected or disconnected: to tokens that cover every session. */
  readonly presence: { readonly presence: readonly PresenceEntry[] };
  /** The gateway's health, every few ticks: to tokens that cover every session. */
  readonly health: Health;
  /** A heartbeat, every `gateway.tickIntervalMs`: to every connection. */
  readonly tick: { readonly ts: number };
  /** The gateway stops: to every connection. */
  readonly shutdown: ShutdownEvent;
}

interface Payloads {
  "sessions.list": SessionsPage;
  "sessions.patch": {
    readonly ok: true;
    readonly path: string;
    readonly key: string;
    readonly entry: SessionRow;
  };
  "sessions.reset": {
    readonly ok: true;
    readonly key: string;
    readonly sessionId: string;
    readonly entry: SessionRow;
  };
  "sessions.resolve": { readonly ok: true; readonly key: string };
  "sessions.create": { readonly ok: true; readonly key: string; readonly sessionId: string };
  "sessions.earlier": {
    readonly key: string;
    /** Of the current conversation. */
    readonly sessionId: string;
    /** Earlier conversations, ended by resets, newest first. */
    readonly conversations: readonly EarlierRow[];
  };
  "sessions.preview": { readonly ts: number; readonly previews: readonly Preview[] };
  "sessions.delete": { readonly ok: true; readonly key: string; readonly deleted: true };
  "chat.history": HistoryPage;
  "chat.send": {
    readonly runId: string;
    readonly status: "started";
    /** The answer to a command such as `/status`. In the transcript it follows the current run. */
    readonly reply?: string;
  };
  "chat.abort": { readonly ok: true; readonly aborted: boolean; readonly runIds: readonly string[] };
  "chat.inject": { readonly ok: true; readonly runId: string; readonly sessionKey: string };
  /** The first answer; `GatewayClient.agent` returns both. */
  agent: {
    readonly runId: string;
    readonly status: "accepted";
    readonly acceptedAt: number;
    readonly sessionKey: string;
  };
  "agent.wait": WaitAnswer;
  send: {
    readonly messageId: string;
    readonly channel: string;
    readonly status: "queued";
    readonly sessionKey: string;
  };
  "chains.list": {
    readonly ts: number;
    readonly count: number;
    /** Newest activity first; after the last page come chains with long, silent work. */
    readonly chains: readonly ChainRow[];
    /** Names of their sessions, by key, if they have one. */
    readonly names: Readonly<Record<string, string>>;
    readonly nextCursor?: string;
  };
  "chains.get": {
    readonly ts: number;
    readonly chain: ChainRow;
    readonly parties: readonly ChainParty[];
    /** Oldest first; the newest 1,000. */
    readonly steps: readonly ChainStep[];
    readonly truncated: boolean;
  };
  "access.explain": {
    readonly viewer: ExplainedSession & { readonly sandboxed: boolean };
    readonly target: ExplainedSession;
    /** `tools.sessions.visibility`, and its effective value for the viewer. */
    readonly visibility: { readonly configured: VisibilityMode; readonly effective: VisibilityMode };
    readonly agentToAgent: AgentToAgentSettings;
    readonly answers: readonly Explanation[];
  };
}

/** The payload of a method's answer. */
export type PayloadOf<M extends MethodName> = (typeof METHODS)[M] extends {
  readonly result: infer S extends Schema;
}
  ? Of<S>
  : M extends keyof Payloads
    ? Payloads[M]
    : never;
