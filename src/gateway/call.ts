// Owns the context of a method call, a method's definition, and the dependencies of the gateway.

import type { AccessContext } from "../access/access.ts";
import type { AccountStatus } from "../channels/accounts.ts";
import type { Channel } from "../channels/channel.ts";
import type { MethodName, ParamsOf } from "../contract/params.ts";
import type { ConfigCheck } from "../contract/payloads/operations.ts";
import type { ModelRow, PayloadOf } from "../contract/payloads.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import type { Viewer } from "../core/rules/visibility.ts";
import { fail, type Result } from "../core/shapes/errors.ts";
import type { PermissionQuestion } from "../core/shapes/permission.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Accepted } from "../engine/run/accept.ts";
import type { Unit } from "../engine/unit.ts";
import type { Outbound } from "../flows/delivery/outbox.ts";
import type { Passes } from "../tools/passes.ts";
import type { OutsideTools, ToolContext } from "../tools/tool.ts";
import type { World } from "../world.ts";
import type { Caller } from "./auth.ts";
import type { Demo, OpenDemo } from "./demo.ts";
import type { History } from "./metrics/history.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { NodeHub } from "./nodes/nodes.ts";

/** One TCP connection, seen from the gateway. */
export interface PeerOf {
  readonly localPort: number;
  readonly remotePort: number;
  readonly remoteAddress: string;
}

interface Permissions {
  list(): readonly PermissionQuestion[];
  /** False: no such request is pending. */
  answer(id: string, decision: "allow" | "deny"): boolean;
}

/** Dependencies that the composition root gives the gateway. */
export interface GatewayDeps {
  readonly settings: Settings;
  readonly world: World;
  readonly engine: Engine;
  readonly outbound: Outbound;
  /** Channels by id. */
  readonly channels: ReadonlyMap<string, Channel>;
  readonly version: string;
  /** The token with all rights: the configured one, or `ensureToken`'s. */
  readonly token: string;
  readonly configPath?: string;
  /** The folder that the web page was built into. Absent: no page is served. */
  readonly pageDir?: string;
  /**
   * The zone of a schedule that names none. A function, since reading the zone loads 8 MB of time zone data.
   */
  timeZone(): string;
  /** This machine's name for clients. Default: the address that the gateway listens on. */
  readonly hostName?: string;
  models(): readonly ModelRow[];
  /** Checks that a model of this name can run; a failure lists valid names. */
  checkModel(name: string): Result<string>;
  /**
   * The workspace of a session's tools: undefined without a sandbox; a failure if no backend can isolate it.
   */
  sandboxFor(chain: SpawnChain): Promise<Result<ToolContext["sandbox"]>>;
  /** Tools of MCP servers. Absent: there are none. */
  readonly outside?: OutsideTools | undefined;
  /** Passes of programs that work for a session. Absent: there are none. */
  readonly passes?: Passes;
  /** Pending permission requests of agents to operators. Absent: agents ask for none. */
  readonly permissions?: Permissions;
  /** Opens a demo. Absent: demos are unavailable. */
  readonly openDemo?: OpenDemo;
  /**
   * Whether to close a connection that comes from inside a sandbox; returns false at once when none could.
   */
  refusesPeer?(peer: PeerOf): Promise<boolean> | false;
  /** Connected devices. Absent: nodes.enabled is false. */
  readonly nodes?: NodeHub | undefined;
  /** Sessions for which a program of an ACP agent is running. Absent: there are none. */
  programs?(): readonly string[];
  /** Status of the channel accounts in this process. Absent: there are none. */
  channelStatuses?(): readonly AccountStatus[];
  /** Metrics of this process. */
  readonly metrics: Metrics;
  /** Reads the configuration file again. Absent: there is no file. */
  readonly checkConfig?: (() => ConfigCheck) | undefined;
  /** Removes the JSONL copy of a deleted transcript. */
  dropTranscript(sessionId: string): Promise<void>;
}

/** State of the running gateway that methods may read. */
export interface GatewayState {
  readonly startedAt: number;
  /** Number of connections that have completed `connect`. */
  connected(): number;
  /** Absent: demos are unavailable. */
  readonly demo?: Pick<Demo, "start" | "stop" | "running">;
  /** Metrics of the last hour. */
  readonly history: Pick<History, "after">;
  /** Closes the connections that this device's tokens opened. Without `role`: of every role. */
  endDevice?(deviceId: string, role?: Caller["role"]): void;
}

export interface CallContext {
  readonly deps: GatewayDeps;
  readonly state: GatewayState;
  readonly caller: Caller;
  readonly viewer: Viewer;
  readonly access: AccessContext;
  /**
   * Aborted when the caller disconnects. A request with an idempotency key continues without its caller, who
   * may retry it; it is aborted when the gateway stops.
   */
  readonly signal: AbortSignal;
  /** Identifies this request to the tools: the same for the same key and params, also after a restart. */
  readonly callId: string;
  /**
   * Stores the answer under the caller's idempotency key, in the transaction that did the work. Does nothing
   * without a key.
   */
  remember(unit: Unit, answer: unknown): Promise<void>;
  /**
   * Reserves the caller's idempotency key before work that must not be done twice. `ifLost`: the answer to a
   * retry if this process dies before the work is done. Does nothing without a key.
   */
  reserve(ifLost: unknown): Promise<void>;
}

export interface Method<M extends MethodName> {
  handle(ctx: CallContext, params: ParamsOf<M>): Promise<Result<PayloadOf<M>>>;
  /** True: this request is harmless to repeat, so its answer is not stored under its key. */
  repeats?(params: ParamsOf<M>): boolean;
  /** Returns the second answer, once the work that the first one accepted is done. */
  follow?(ctx: CallContext, answer: unknown): Promise<Result<unknown>>;
}

/** Fails if the run existed before: it belongs to its first requester, whatever its text. */
export function onlyFresh<T extends Pick<Accepted, "fresh">>(accepted: Result<T>): Result<T> {
  if (!accepted.ok || accepted.value.fresh) return accepted;
  return fail("idempotency_conflict", "this idempotencyKey is the id of a run that another request began", {
    hint: "Use a new key for a new request; agent.wait returns the state of that run.",
  });
}

export type Methods<M extends MethodName> = { readonly [K in M]: Method<K> };
