// Owns what a tool of the gateway is: a description for the model, and what it may use when it is called.
// T1: a tool returns one JSON object; an expected failure is such a result too (`status`, `code`, `error`).

import type { Result } from "../core/errors.ts";
import type { NodeCall, NodeStatus } from "../core/node.ts";
import type { Run } from "../core/run.ts";
import type { SpawnChain } from "../core/sandbox-policy.ts";
import type { Session } from "../core/session.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import type { JsonSchema, ToolCallRequest, ToolSpec } from "../core/tool.ts";
import type { Viewer } from "../core/visibility.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/waits.ts";
import type { Threads } from "../flows/bindings.ts";
import type { Outbound } from "../flows/outbox.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Db } from "../store/sql.ts";
import type { ArgumentLimits } from "./arguments.ts";

/** A server of which tools are missing, and why, in words that hold nothing of the server's. */
export interface MissingTools {
  readonly server: string;
  readonly why: string;
}

/** The tools of outside servers that a session has at this moment, as far as they could be had. */
export interface OutsideSet {
  readonly tools: readonly Tool[];
  readonly missing: readonly MissingTools[];
}

/** How an outside server stands at this moment. */
export interface OutsideServerStatus {
  readonly server: string;
  /** `idle`: nobody has wanted it yet, or not again since it ended. */
  readonly state: "idle" | "starting" | "ready" | "down";
  readonly connectedSince?: number;
  /** It is not started again before. */
  readonly backoffUntil?: number;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
  /** Tools of its last list. */
  readonly tools?: number;
}

/** Where the tools of outside servers come from. */
export interface OutsideTools {
  /**
   * Starts the servers that the session may use and that are not running, and waits for them, but not for
   * long. `only`: a tool's name; no other server is touched.
   */
  forSession(chain: SpawnChain, signal: AbortSignal, only?: string): Promise<OutsideSet>;
  /** Names that are known so far; nothing is started. */
  knownNames(): readonly string[];
  /** How each server stands; nothing is started. */
  statuses(): readonly OutsideServerStatus[];
}

/** The way to paired devices. */
export interface NodeDoor {
  statuses(): Promise<readonly NodeStatus[]>;
  /** Waits for what the node says; a failure tells whether the command may have been done. */
  invoke(call: NodeCall, signal: AbortSignal): Promise<Result<unknown>>;
}

/** Everything that a tool call may use. */
export interface ToolContext {
  readonly settings: Settings;
  readonly db: Db;
  readonly engine: Engine;
  /** Whose rights decide; for an operator acting as a session, both. */
  readonly viewer: Viewer;
  /** The session that calls, or that an operator calls for. */
  readonly session: Session;
  readonly agent: AgentSettings;
  /** The session, who spawned it, and so on: what its rights depend on. */
  readonly chain: SpawnChain;
  /** Every tool that there is, whoever may use it. */
  readonly toolNames: readonly string[];
  /** The tools of outside servers that the session has besides ours. Absent: none. */
  readonly outside?: OutsideSet;
  /** Absent: no device is paired, or nodes are off. */
  readonly nodes?: NodeDoor | undefined;
  /** The run that calls; absent when an operator invokes a tool. */
  readonly run?: Run;
  readonly signal: AbortSignal;
  /** Awaited before a call begins that must not be run twice. If it throws, the call does not begin. */
  readonly begins?: () => Promise<void>;
  /** Where read, write, edit and exec work; absent only when the session is not sandboxed. */
  readonly sandbox?: Sandbox;
  /** Lets the calling run wait for another one without holding a slot (I6). */
  readonly wait?: RunWait;
  /** The door says of each call whether its answer was written to the client. Default: it does not. */
  readonly confirmsAnswers?: boolean;
  /** Where sub-agents get threads. Absent: nowhere. */
  readonly threads?: Threads | undefined;
  /** For whoever counts calls. */
  readonly answered?: ToolAnswered | undefined;
  /** Told of text that is to leave. Absent: nobody delivers here. */
  readonly outbound?: Outbound | undefined;
}

export type ToolResult = Record<string, unknown>;

/** Told of each call that was answered, whoever made it. */
export type ToolAnswered = (name: string, result: ToolResult) => void;

/** The session whose tools are described. */
export interface Described {
  readonly settings: Settings;
  readonly chain: SpawnChain;
  /** A client without a model of ours. */
  readonly external: boolean;
}

export interface Tool {
  readonly spec: ToolSpec;
  /** The description where it depends on the session and its settings. Default: that of `spec`. */
  describe?(whose: Described): string;
  /** Limits of arguments that the schema can't express. Default: none. */
  readonly limits?: ArgumentLimits;
  /** Arguments that are accepted, but not advertised: spellings of other programs. Default: none. */
  readonly accepts?: Readonly<Record<string, JsonSchema>>;
  /** Whoever runs it checks the arguments; here only that they are one object. */
  readonly checksArguments?: true;
  /**
   * What this very call came to if it was accepted before a restart; undefined: it was not. It is asked
   * before any rule, for what was accepted is not judged again.
   */
  before?(
    ctx: ToolContext,
    args: Readonly<Record<string, unknown>>,
    call: ToolCallRequest,
  ): Promise<ToolResult | undefined>;
  /** Arguments were read against `spec.parameters`, `accepts` and `limits`. */
  execute(ctx: ToolContext, args: Record<string, unknown>, call: ToolCallRequest): Promise<ToolResult>;
}
