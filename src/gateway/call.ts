// Owns what a method is given and what it gives back, and what the gateway as a whole is made of.

import type { Standing } from "../channels/accounts.ts";
import type { Channel } from "../channels/channel.ts";
import { fail, type Result } from "../core/errors.ts";
import type { PermissionQuestion } from "../core/permission.ts";
import type { SpawnChain } from "../core/sandbox-policy.ts";
import type { Settings } from "../core/settings.ts";
import type { Viewer } from "../core/visibility.ts";
import type { Accepted } from "../engine/accept.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import type { AccessContext } from "../flows/access.ts";
import type { Outbound } from "../flows/outbox.ts";
import type { Passes } from "../tools/passes.ts";
import type { OutsideTools, ToolContext } from "../tools/tool.ts";
import type { World } from "../world.ts";
import type { Caller } from "./auth.ts";
import type { Demo, OpenDemo } from "./demo.ts";
import type { History } from "./history.ts";
import type { Metrics } from "./metrics.ts";
import type { NodeHub } from "./nodes.ts";
import type { MethodName, ParamsOf } from "./params.ts";
import type { ConfigCheck } from "./payloads/operations.ts";
import type { ModelRow, PayloadOf } from "./payloads.ts";

/** One TCP connection, as the gateway's end sees it. */
export interface PeerOf {
  readonly localPort: number;
  readonly remotePort: number;
  readonly remoteAddress: string;
}

interface Permissions {
  list(): readonly PermissionQuestion[];
  /** False: nobody asks that, or not any more. */
  answer(id: string, decision: "allow" | "deny"): boolean;
}

/** What the composition root gives the gateway. */
export interface GatewayDeps {
  readonly settings: Settings;
  readonly world: World;
  readonly engine: Engine;
  readonly outbound: Outbound;
  /** By id: where people talk, and whose platforms may call. */
  readonly channels: ReadonlyMap<string, Channel>;
  readonly version: string;
  /** The token that everything may be done with: the configured one, or `ensureToken`'s. */
  readonly token: string;
  readonly configPath?: string;
  /** The folder that the web page was built into. Absent: no page is served. */
  readonly pageDir?: string;
  /** The zone of a schedule that names none. A function: to find it out costs 8 MB of time zone data. */
  timeZone(): string;
  /** This machine, as clients are told. Default: the address that is listened on. */
  readonly hostName?: string;
  models(): readonly ModelRow[];
  /** Whether a model of this name could run; a failure lists valid ones. */
  checkModel(name: string): Result<string>;
  /** Where a session's tools work: undefined for a bare one; a failure where no backend can contain it. */
  sandboxFor(chain: SpawnChain): Promise<Result<ToolContext["sandbox"]>>;
  /** Tools of outside servers. Absent: there are none. */
  readonly outside?: OutsideTools | undefined;
  /** Of programs that work for a session. Absent: there are none. */
  readonly passes?: Passes;
  /** Where agents ask operators for permission. Absent: none asks. */
  readonly permissions?: Permissions;
  /** Opens a demo. Absent: there is none to show. */
  readonly openDemo?: OpenDemo;
  /** Whether to hang up on who dials from inside a sandbox; false at once when nobody could. */
  refusesPeer?(peer: PeerOf): Promise<boolean> | false;
  /** Devices elsewhere. Absent: nodes.enabled is false. */
  readonly nodes?: NodeHub | undefined;
  /** Sessions for which a program of an ACP agent is running. Absent: there are none. */
  programs?(): readonly string[];
  /** How the accounts at channels stand in this process. Absent: there are none. */
  standings?(): readonly Standing[];
  /** What is measured of this process. */
  readonly metrics: Metrics;
  /** Reads the configuration file again. Absent: there is none to read. */
  readonly checkConfig?: (() => ConfigCheck) | undefined;
  /** Removes the readable copy of a deleted transcript. */
  dropTranscript(sessionId: string): Promise<void>;
}

/** What the methods may know of the running gateway. */
export interface GatewayState {
  readonly startedAt: number;
  /** Connections that have said hello. */
  connected(): number;
  /** Absent: there is none to show. */
  readonly demo?: Pick<Demo, "start" | "stop" | "running">;
  /** The last hour of the figures. */
  readonly history: Pick<History, "after">;
  /** Closes the connections that device tokens of this device opened. No role: of every role. */
  endDevice?(deviceId: string, role?: Caller["role"]): void;
}

export interface CallContext {
  readonly deps: GatewayDeps;
  readonly state: GatewayState;
  readonly caller: Caller;
  readonly viewer: Viewer;
  readonly access: AccessContext;
  /**
   * Aborted when the caller is gone. A request with an idempotency key is finished without its caller,
   * who may ask again; it is aborted when the gateway stops.
   */
  readonly signal: AbortSignal;
  /** Names this request to the tools: the same for the same key and params, also after a restart. */
  readonly callId: string;
  /**
   * Keeps the answer under the caller's idempotency key, in the unit that did the work. Without a key:
   * nothing.
   */
  remember(unit: Unit, answer: unknown): Promise<void>;
  /**
   * Reserves the caller's idempotency key before work that must not be done twice. `ifLost`: the answer to a
   * repetition if this process does not get to the end of the work. Without a key: nothing.
   */
  reserve(ifLost: unknown): Promise<void>;
}

export interface Method<M extends MethodName> {
  handle(ctx: CallContext, params: ParamsOf<M>): Promise<Result<PayloadOf<M>>>;
  /** True: this request does nothing that could be done twice, so that no answer is kept under its key. */
  repeats?(params: ParamsOf<M>): boolean;
  /** The second answer, given when what the first one promised is done. */
  follow?(ctx: CallContext, answer: unknown): Promise<Result<unknown>>;
}

/** What a request began. A run that was there before belongs to whoever began it, whatever its text. */
export function onlyFresh<T extends Pick<Accepted, "fresh">>(accepted: Result<T>): Result<T> {
  if (!accepted.ok || accepted.value.fresh) return accepted;
  return fail("idempotency_conflict", "this idempotencyKey is the id of a run that another request began", {
    hint: "Use a new key for a new request; agent.wait tells how that run stands.",
  });
}

export type Methods<M extends MethodName> = { readonly [K in M]: Method<K> };
