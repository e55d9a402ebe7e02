// Owns what the methods answer, where it is of one simple shape: the same types for the gateway and its
// clients.
// PL1: a handler can't answer anything else: `Method` asks for these types.

import type { Message } from "../core/message.ts";
import type { PermissionQuestion } from "../core/permission.ts";
import type { RunState } from "../core/run.ts";
import type { Session, SessionKind, SessionState } from "../core/session.ts";
import type { MethodName } from "./params.ts";
import type { CronPayloads } from "./payloads-cron.ts";
import type {
  AgentEvent,
  ChatEvent,
  CronEvent,
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

interface HistoryPage {
  readonly sessionKey: string;
  readonly sessionId: string;
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly thinkingLevel: string;
  /** For `before`: the page before this one. Absent on the first page of the transcript. */
  readonly nextBefore?: string;
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
    | "contextTokens"
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
}

export interface ListedRow extends SessionRow {
  readonly state: SessionState;
  readonly queuedRuns: number;
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
  readonly channels: Readonly<Record<string, { readonly ok: boolean; readonly configured: boolean }>>;
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
  readonly deliveries?: { readonly pending: number; readonly failed: number };
}

interface Status extends Health {
  readonly protocol: readonly number[];
  readonly agents: number;
  readonly models: number;
  readonly connections?: number;
}

/** What each event carries. */
export interface EventPayloads {
  readonly chat: ChatEvent;
  readonly agent: AgentEvent;
  readonly sessions: SessionsEvent;
  readonly cron: CronEvent;
  readonly presence: { readonly presence: readonly PresenceEntry[] };
  readonly health: Health;
  readonly tick: { readonly ts: number };
  readonly shutdown: ShutdownEvent;
}

interface Payloads extends CronPayloads {
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
  "sessions.preview": { readonly ts: number; readonly previews: readonly Preview[] };
  "sessions.delete": { readonly ok: true; readonly key: string; readonly deleted: true };
  "chat.history": HistoryPage;
  "chat.send": { readonly runId: string; readonly status: "started" };
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
    readonly withheld: readonly { readonly name: string; readonly reason: string | undefined }[];
  };
  "tools.invoke": Record<string, unknown>;
  "permissions.list": { readonly permissions: readonly PermissionQuestion[] };
  "permissions.answer": { readonly ok: true; readonly id: string; readonly decision: "allow" | "deny" };
}

/** What a method answers; `unknown` where it has many shapes. */
export type PayloadOf<M extends MethodName> = M extends keyof Payloads ? Payloads[M] : unknown;
