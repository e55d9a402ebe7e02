// Defines the shape of a built-in tool: its spec for the model, and the parts of a call's context that
// several tools need. A tool returns one JSON object or a failure; `toolResult` converts both to JSON.

import {
  type ArgumentsOf,
  acceptedBy,
  type ToolName,
  type ToolResultOf,
  toolSpec,
} from "../contract/tools.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import type { Viewer } from "../core/rules/visibility.ts";
import { type Result, toolFailure } from "../core/shapes/errors.ts";
import type { Labels, Sink } from "../core/shapes/labels.ts";
import type { Run } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import type { AgentSettings, Settings } from "../core/shapes/settings/settings.ts";
import type { JsonSchema, ToolCallRequest, ToolSpec } from "../core/shapes/tool.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Db } from "../store/sql.ts";
import type { ArgumentLimit, ArgumentLimits } from "./arguments.ts";
import type { AskingContext } from "./mcp/asking.ts";
import type { SignIn } from "./mcp/sign-in/sign-in.ts";

/** A server whose tools are missing, and the reason, which contains no text of the server. */
export interface MissingTools {
  readonly server: string;
  readonly why: string;
}

/** The available tools of a session's MCP servers. */
export interface OutsideSet {
  readonly tools: readonly Tool<AskingContext>[];
  readonly missing: readonly MissingTools[];
}

/** The current status of an MCP server. */
export interface OutsideServerStatus {
  readonly server: string;
  /** `idle`: the server is not running, because it was not needed since the start, or since it ended. */
  readonly state: "idle" | "starting" | "ready" | "down";
  readonly connectedSince?: number;
  /** The earliest time at which the server may be started again. */
  readonly backoffUntil?: number;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
  /** True if the server has refused something until a person signs in. */
  readonly needsSignIn?: boolean;
  /** Number of tools in the list that was read last. */
  readonly tools?: number;
}

/** Provides the tools of MCP servers. */
export interface OutsideTools {
  /**
   * Starts the servers that the session may use and that are not running, and waits for them for a short
   * time. `only`: a tool's name; only its server is started.
   */
  forSession(chain: SpawnChain, signal: AbortSignal, only?: string): Promise<OutsideSet>;
  /** Returns the names known so far. Starts nothing. */
  knownNames(): readonly string[];
  /** Returns the status of each server. Starts nothing. */
  statuses(): readonly OutsideServerStatus[];
  /**
   * Returns the tools in the list that a server sent last: those that are used, and those that are left out.
   */
  toolsOf(server: string): {
    readonly tools: readonly string[];
    readonly leftOut: readonly { readonly tool: string; readonly why: string }[];
  };
  /** Starts a server if it is not running, also during the pause after a failure, and reads its tools. */
  test(server: string, signal: AbortSignal): Promise<Result<unknown>>;
  /** Returns the sign-ins at a server. Undefined: there is no such server, or nobody can sign in there. */
  signIn(server: string): SignIn | undefined;
}

/** Reads sessions with the rights of a viewer. */
export interface ReadingContext {
  readonly settings: Settings;
  readonly db: Db;
  readonly engine: Pick<Engine, "now" | "redactor" | "store">;
  /** The viewer whose rights apply. If an operator acts as a session, the rights of both apply. */
  readonly viewer: Viewer;
}

/** The calling session, or the session for which an operator calls. */
export interface CallerContext {
  readonly session: Session;
  readonly agent: AgentSettings;
  /** The session and its ancestors, which determine its rights. */
  readonly chain: SpawnChain;
}

export interface RunContext {
  readonly signal: AbortSignal;
  /** The calling run. Absent if an operator invokes the tool. */
  readonly run?: Run;
  /** Lets the calling run wait for another one without holding a slot (I6). */
  readonly wait?: RunWait;
  /** Returns the time zone of the gateway. Absent if the caller is not a run of this gateway. */
  timeZone?(): string;
}

/** A context for tools that write. Changes are made in the name of the calling session and its run. */
export interface WritingContext extends ReadingContext, Pick<CallerContext, "session">, RunContext {
  readonly engine: Engine;
}

/** The context in which the effect of a call and its content are named. */
export type SinkContext = ReadingContext & CallerContext & RunContext;

/** The answer to a call: one JSON object. */
export type ToolResult = Record<string, unknown>;

/** Converts the answer or the failure to the one JSON object that a caller gets. */
export function toolResult(answer: Result<ToolResult>): ToolResult {
  return answer.ok ? answer.value : toolFailure(answer);
}

/** Called after each answered call, by any caller. */
export type ToolAnswered = (name: string, result: ToolResult) => void;

/** The facts that decide which tools have something to work with. */
export interface ToolPolicy {
  readonly settings: Settings;
  /** The session's skills. Absent: none. */
  readonly skills?: readonly object[] | undefined;
  /** The parts with which tools of features work, by tool. A tool whose part is missing is not offered. */
  readonly ready?: ReadonlyMap<string, unknown> | undefined;
  /** True for the session of an external program. Default: false. */
  readonly external?: boolean;
}

/** The session for which a description is written. */
export interface Described {
  readonly settings: Settings;
  readonly chain: SpawnChain;
  /** True if the session belongs to an external program. */
  readonly external: boolean;
}

type Awaitable<T> = Promise<T | undefined> | T | undefined;

/** The functions of a tool, for arguments that were checked. */
interface Functions<Context, Args, Answer> {
  /**
   * Returns the answer to this call if it was accepted before a restart, or undefined if it was not. Called
   * before any policy check, because an accepted call is not checked again.
   */
  readonly before?: (ctx: Context, args: Args, call: ToolCallRequest) => Promise<Answer | undefined>;
  /**
   * Returns the effect of a call outside of its session, or undefined if it has none. Called only for runs
   * with outside content (core/rules/labels/labels.ts).
   */
  readonly sink?: (ctx: SinkContext, args: Args, call: ToolCallRequest) => Awaitable<Sink>;
  /** True if a call reads the files of the workspace that its arguments name. */
  readonly readsFiles?: boolean;
  /**
   * Returns the labels of the other content that a call has read, or undefined if it has none. `result`:
   * absent if the call failed.
   */
  readonly reads?: (ctx: SinkContext, args: Args, result: Answer | undefined) => Awaitable<Labels>;
  /** Runs the call. The arguments were checked against `accepts` and `limits`. */
  readonly execute: (ctx: Context, args: Args, call: ToolCallRequest) => Promise<Result<Answer>>;
}

/** `Context`: the parts of a call's context that the tool needs. */
export interface Tool<Context> extends Functions<Context, Readonly<Record<string, unknown>>, ToolResult> {
  readonly spec: ToolSpec;
  /** The schema of everything that the tool accepts. A tool of an MCP server accepts any object. */
  readonly accepts: JsonSchema;
  /** Returns the parts of `spec` that depend on the session and its settings. Default: none. */
  describe?(whose: Described): Partial<Pick<ToolSpec, "description" | "parameters">>;
  /** Returns whether the tool has something to work with. Default: it has. */
  isUsable?(policy: ToolPolicy): boolean;
  /** Limits of arguments that the schema can't express. Default: none. */
  readonly limits?: ArgumentLimits | undefined;
}

/** Optional arguments that have a default in the definition of their limit. */
type Filled<A, L> = {
  [K in keyof A & keyof L]: L[K] extends ArgumentLimit<infer T> ? (undefined extends T ? never : K) : never;
}[keyof A & keyof L];

/** The type of arguments A after the limits L were applied. */
type Limited<A, L> = A & Required<Pick<A, Filled<A, L>>>;

/** The implementation of a built-in tool, typed by its entry in the contract. */
interface Implementation<N extends ToolName, Context, L>
  extends Functions<Context, Limited<ArgumentsOf<N>, L>, ToolResultOf<N>>,
    Pick<Tool<Context>, "describe" | "isUsable"> {
  readonly limits?: L;
}

/** Creates a tool from its entry in the contract. */
export function tool<N extends ToolName, Context, L extends ArgumentLimits = Record<never, never>>(
  name: N,
  implementation: Implementation<N, Context, L>,
): Tool<Context> {
  // The arguments have these types once `readArguments` has checked them.
  const checked = implementation as unknown as Omit<Tool<Context>, "spec" | "accepts">;
  return { spec: toolSpec(name), accepts: acceptedBy(name), ...checked };
}
