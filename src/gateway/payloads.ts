// Owns what the methods answer and what events carry: the same types for the gateway and its clients.
// PL1: a handler can't answer anything else, and no method is without an answer: `Method` asks for these.

import type { ChainParty, ChainRow, ChainStep } from "../core/chain-step.ts";
import type { Explanation } from "../core/explanation.ts";
import type { Message, Provenance } from "../core/message.ts";
import type { PermissionQuestion } from "../core/permission.ts";
import type { Route } from "../core/route.ts";
import type { RunFacts, RunState } from "../core/run.ts";
import type { Session, SessionKind, SessionState } from "../core/session.ts";
import type { AgentToAgentSettings, VisibilityMode } from "../core/settings.ts";
import type { ProcessRow } from "../store/processes.ts";
import type { MethodName } from "./params.ts";
import type { ChannelPayloads } from "./payloads/channels.ts";
import type { CronPayloads } from "./payloads/cron.ts";
import type { DevicePayloads } from "./payloads/devices.ts";
import type {
  NodeInvokeCancel,
  NodeInvokeRequest,
  NodePairRequested,
  NodePairResolved,
  NodePayloads,
} from "./payloads/nodes.ts";
import type { ConfigCheck, LogPage, MetricsHistory, UsageReport } from "./payloads/operations.ts";
import type {
  AgentEvent,
  ChatEvent,
  CronEvent,
  DeliveriesEvent,
  PresenceEntry,
  SessionsEvent,
  ShutdownEvent,
} from "./protocol.ts";

/** A model as `models.list` shows it. */
export interface ModelRow {
  /** Without its provider. */
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly contextWindow: number;
  readonly reasoning: boolean;
}

interface AgentRow {
  readonly id: string;
  readonly name?: string;
  readonly default: boolean;
  readonly model: string;
}

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
  /** Its beginning. Absent where it is long. */
  readonly text?: string;
  readonly provenance?: Provenance;
  readonly senderName?: string;
}

/** The session beside the newest page of its transcript. */
export interface HistoryNow {
  readonly session: ListedRow;
  /** The first runs that have not begun, in their order; `session.queuedRuns` says how many there are. */
  readonly queue: readonly QueuedRun[];
}

/** A conversation that a reset has ended. */
export interface EarlierRow {
  readonly sessionId: string;
  /** When the conversation began. */
  readonly startedAt: number;
  /** When its last message was written. */
  readonly endedAt: number;
  /** How many messages it has. */
  readonly messages: number;
  /** How its first message begins. */
  readonly title?: string;
}

interface HistoryPage {
  readonly sessionKey: string;
  /**
   * Of the conversation that the messages are of. Absent: the key is a free name, and the conversation begins
   * with the first message to it.
   */
  readonly sessionId?: string;
  /** Oldest first; with `includeRuns` each names its run, if it has one. */
  readonly messages: readonly (Message & { readonly runId?: string })[];
  readonly thinkingLevel: string;
  /** For `before`: the page before this one. Absent on the first page of the transcript. */
  readonly nextBefore?: string;
  /** For `after`: the page behind this one. Absent on the newest page. */
  readonly nextAfter?: string;
  /** With `includeRuns`: the runs of these messages, and on the newest page those that have not ended. */
  readonly runs?: Readonly<Record<string, RunRow>>;
  /**
   * With `includeRuns`: when the model began to read a summary in place of what is before a message, by that
   * message's id.
   */
  readonly compactions?: Readonly<Record<string, number>>;
  /** With `includeRuns`, on the newest page. */
  readonly now?: HistoryNow;
}

export interface WaitAnswer {
  readonly runId: string;
  /** `timeout`: waiting ended, the run goes on. */
  readonly status: "ok" | "error" | "timeout";
  readonly runStatus: RunState;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly error?: string;
  readonly code?: string;
}

interface ToolRow {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
  /** Why the session has it, naming the settings. */
  readonly reason: string;
}

/** A row of the outbox. */
export interface DeliveryRow {
  readonly id: string;
  readonly sessionKey: string;
  readonly runId?: string;
  /** `hook`: news for a program; its text is the body of the request. */
  readonly kind: "announce" | "send" | "hook";
  readonly route: Route;
  readonly text: string;
  /** The text was cut to the `maxChars` that were asked for. */
  readonly textTruncated?: boolean;
  readonly state: "pending" | "sent" | "failed" | "skipped";
  readonly code?: string;
  readonly error?: string;
  readonly attempts: number;
  /** An attempt is being made. */
  readonly attemptOpen: boolean;
  readonly partsSent: number;
  readonly nextAttemptAt: number;
  readonly createdAt: number;
  readonly settledAt?: number;
  readonly dismissedAt?: number;
}

interface SettledDelivery {
  readonly ok: true;
  readonly delivery: DeliveryRow;
}

interface ExplainedSession {
  readonly key: string;
  readonly exists: boolean;
  readonly agentId?: string;
  readonly archived?: true;
}

/** A session as `sessions.list` and `sessions.patch` show it. What isn't set is absent. */
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
  /** Null: the model is not known. */
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
  /** The same place whole, its thread too. */
  readonly deliveryContext?: Route;
}

export interface ListedRow extends SessionRow {
  readonly state: SessionState;
  readonly queuedRuns: number;
  /** Of a waiting one: the sessions whose runs it waits for, as far as the caller sees them. */
  readonly waitingOn?: readonly string[];
  /** With `includeChildren`: the sessions that it spawned, counted up to 1000. */
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

export interface Health {
  /** The store answers, and work is accepted. */
  readonly ok: boolean;
  readonly ts: number;
  readonly version: string;
  readonly uptimeMs: number;
  readonly store: { readonly kind: string; readonly ok: boolean };
  readonly accepting: boolean;
  /** `linked`: messages come in, at this process. */
  readonly channels: Readonly<
    Record<string, { readonly ok: boolean; readonly configured: boolean; readonly linked?: boolean }>
  >;
  readonly defaultAgentId: string;
  readonly durationMs: number;
  /** Runs and slots; told to those only whose token covers every session. */
  readonly lanes?: {
    readonly running: number;
    readonly waiting: number;
    readonly queued: number;
    readonly slots: { readonly max: number; readonly taken: number };
  };
  /** As above. */
  readonly deliveries?: {
    readonly pending: number;
    readonly failed: number;
    /** Events for web hooks that were not kept, until their failed delivery is retried or dismissed. */
    readonly dropped?: number;
  };
}

interface Status extends Health {
  readonly protocol: readonly number[];
  readonly agents: number;
  readonly models: number;
  /** As above. */
  readonly connections?: number;
  /** As above, where several gateways share the store: this one, and all that are known. */
  readonly processId?: string;
  readonly processes?: readonly ProcessRow[];
  /** Nobody has ever said anything here. As above. */
  readonly unused?: boolean;
  /**
   * The configuration file as it is now, compared with what runs: whether it can be read, whether a restart
   * would change something, and which parts. As above.
   */
  readonly config?: Pick<ConfigCheck, "ok" | "differs" | "changed">;
  /** Absent: this gateway has none to show. */
  readonly demo?: { readonly running: boolean };
}

/** What each event carries; who gets it, and when. */
export interface EventPayloads {
  /** The text of a run so far and its end, for a chat window: to those who see the session. */
  readonly chat: ChatEvent;
  /** All that happens in a run: start, text, thoughts, tools, steps of a conversation, end. To the same. */
  readonly agent: AgentEvent;
  /** A session was made, changed, reset or deleted, or a run of it was accepted, began, waits, ended. */
  readonly sessions: SessionsEvent;
  /** A row of the outbox has changed: to operator.admin. */
  readonly deliveries: DeliveriesEvent;
  /** Something became of a scheduled job: to those who see its session. */
  readonly cron: CronEvent;
  /** A device asks to be paired: to operator.admin. */
  readonly "node.pair.requested": NodePairRequested;
  /** That was settled, or a device is paired no more: to operator.admin. */
  readonly "node.pair.resolved": NodePairResolved;
  /** A command: to the node that is asked. */
  readonly "node.invoke.request": NodeInvokeRequest;
  /** Nobody waits for its answer any more: to that node. */
  readonly "node.invoke.cancel": NodeInvokeCancel;
  /** Somebody came or left: to tokens that cover every session. */
  readonly presence: { readonly presence: readonly PresenceEntry[] };
  /** How the gateway stands, every few ticks: to tokens that cover every session. */
  readonly health: Health;
  /** A sign of life, every `gateway.tickIntervalMs`: to everybody. */
  readonly tick: { readonly ts: number };
  /** The gateway stops: to everybody. */
  readonly shutdown: ShutdownEvent;
}

/** Where a demo's WebSocket is, on the port of the gateway that was asked, and the token that opens it. */
export interface DemoAddress {
  readonly path: string;
  readonly token: string;
}

interface Payloads extends ChannelPayloads, CronPayloads, DevicePayloads, NodePayloads {
  health: Health;
  status: Status;
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
  "agents.list": {
    readonly defaultId: string;
    readonly mainKey: string;
    readonly scope: string;
    readonly agents: readonly AgentRow[];
  };
  "models.list": { readonly models: readonly ModelRow[] };
  "sessions.resolve": { readonly ok: true; readonly key: string };
  "sessions.create": { readonly ok: true; readonly key: string; readonly sessionId: string };
  "sessions.earlier": {
    readonly key: string;
    /** Of the conversation in force. */
    readonly sessionId: string;
    /** Those that resets have ended, newest first. */
    readonly conversations: readonly EarlierRow[];
  };
  "sessions.preview": { readonly ts: number; readonly previews: readonly Preview[] };
  "sessions.delete": { readonly ok: true; readonly key: string; readonly deleted: true };
  "chat.history": HistoryPage;
  "chat.send": {
    readonly runId: string;
    readonly status: "started";
    /** The answer to a command such as `/status`. The transcript has it behind the run under way. */
    readonly reply?: string;
  };
  "chat.abort": { readonly ok: true; readonly aborted: boolean; readonly runIds: readonly string[] };
  "chat.inject": { readonly ok: true; readonly runId: string; readonly sessionKey: string };
  /** The first answer; `GatewayClient.agent` gives both. */
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
  "tools.catalog": {
    readonly sessionKey: string;
    readonly tools: readonly ToolRow[];
    /** `mcp__<server>__*`: no tool of that server. */
    readonly withheld: readonly { readonly name: string; readonly reason: string }[];
    /** Outside servers whose tools could not be had. */
    readonly missing: readonly { readonly server: string; readonly why: string }[];
  };
  "tools.invoke": Record<string, unknown>;
  "chains.list": {
    readonly ts: number;
    readonly count: number;
    /** Newest activity first; behind the last page those that are at long, silent work. */
    readonly chains: readonly ChainRow[];
    /** What their sessions are called, by key; those that have a name. */
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
  "deliveries.list": {
    readonly count: number;
    /** Newest first. */
    readonly deliveries: readonly DeliveryRow[];
    readonly nextCursor?: string;
  };
  "deliveries.retry": SettledDelivery;
  "deliveries.dismiss": SettledDelivery;
  "access.explain": {
    readonly viewer: ExplainedSession & { readonly sandboxed: boolean };
    readonly target: ExplainedSession;
    /** `tools.sessions.visibility`, and what it comes to for the viewer. */
    readonly visibility: { readonly configured: VisibilityMode; readonly effective: VisibilityMode };
    readonly agentToAgent: AgentToAgentSettings;
    readonly answers: readonly Explanation[];
  };
  "demo.start": DemoAddress;
  "demo.stop": { readonly ok: true; readonly stopped: boolean };
  "metrics.history": MetricsHistory;
  usage: UsageReport;
  "logs.tail": LogPage;
  "config.check": ConfigCheck;
  "permissions.list": { readonly permissions: readonly PermissionQuestion[] };
  "permissions.answer": { readonly ok: true; readonly id: string; readonly decision: "allow" | "deny" };
}

/** What a method answers. */
export type PayloadOf<M extends MethodName> = Payloads[M];
