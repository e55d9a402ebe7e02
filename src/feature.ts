// Defines what a feature is: one capability in one folder, with everything that it adds to the kernel. Its
// entry file holds declarations only; the code behind them is loaded at its first use.

import type { TurnEnd } from "./agent/loop/loop.ts";
import type { ModelCall } from "./agent/model/model.ts";
import type { Channel } from "./channels/channel.ts";
import type { Platform } from "./channels/platform.ts";
import type { Cli } from "./cli/cli.ts";
import type { Commands } from "./cli/row.ts";
import type { Fields, Schema as Setting } from "./config/schema/setting.ts";
import type { Problem } from "./config/source.ts";
import type { BodySpec } from "./contract/bodies.ts";
import type { EventSpec } from "./contract/events.ts";
import type { AttentionItem } from "./contract/methods/attention.ts";
import type { MethodSpec } from "./contract/methods/parts.ts";
import type { ToolEntry } from "./contract/tools/parts.ts";
import type { SpawnChain } from "./core/rules/sandbox-policy.ts";
import type { Failure, Result } from "./core/shapes/errors.ts";
import type { Entry } from "./core/shapes/message.ts";
import type { Route } from "./core/shapes/route.ts";
import type { Run } from "./core/shapes/run.ts";
import type { Session } from "./core/shapes/session.ts";
import type { AgentSettings, Settings, TokenSettings } from "./core/shapes/settings/settings.ts";
import type { Redactor } from "./core/text/redact/redact.ts";
import type { Path } from "./core/text/value-path.ts";
import type { DeadlineHandler } from "./engine/deadlines.ts";
import type { Engine } from "./engine/engine.ts";
import type { LaneHandle } from "./engine/run/execution.ts";
import type { EndFacts } from "./engine/run/finish.ts";
import type { Commit, Recorder, Unit } from "./engine/unit.ts";
import type { Covers } from "./gateway/attention/items.ts";
import type { CallContext, FeatureDeps } from "./gateway/call.ts";
import type { RouteParts } from "./gateway/http/http.ts";
import type { Door } from "./gateway/http/request.ts";
import type { NodeDoor } from "./gateway/socket/connection.ts";
import type { Table } from "./store/schema/definition.ts";
import type { Db } from "./store/sql.ts";
import type { GrantRows } from "./store/transfer/grants.ts";
import type { RunTrace } from "./telemetry/traces.ts";
import type { GuidanceFiles } from "./tools/guidance/guidance.ts";
import type { Passes } from "./tools/passes.ts";
import type { Tool, ToolAnswered } from "./tools/tool.ts";
import type { World } from "./world.ts";

/** Loads code. Its return type must be written at the function, because the types of the list need it. */
export type Load<T> = () => Promise<T>;

/** The handler of a method, as `Methods` of `gateway/call.ts` types it. */
export interface MethodCode {
  readonly handle: (ctx: CallContext<FeatureDeps>, params: never) => Promise<Result<unknown>>;
  repeats?(params: never): boolean;
  readonly follow?: (ctx: CallContext<FeatureDeps>, answer: unknown) => Promise<Result<unknown>>;
}

/** The return type of a feature's function that loads code, like `LoadedBy<"handlers">`. */
export type LoadedBy<K extends "commands" | "handlers" | "forms" | "checks" | "attention" | "outbox"> =
  ReturnType<Required<Feature>[K]>;

/** The parts of a running gateway that the code of features gets. */
export interface FeatureParts {
  /** The settings as they are now. */
  readonly settings: Settings;
  /** Returns the engine. A function, because it is created after the parts that it calls. */
  engine(): Engine;
}

/** The parts that a service gets. */
export interface ServiceParts extends FeatureParts {
  readonly world: World;
  readonly version: string;
  /** Returns the number of connected clients. */
  connections(): number;
}

/** Is told of the work of this process. */
export interface Watch {
  /** A transaction of the engine took this long. */
  committed(ms: number): void;
  modelCalled(call: ModelCall): void;
  readonly toolAnswered: ToolAnswered;
  /** An event for a program was left out, because too many waited for it. */
  eventDropped(program: string): void;
}

/** A part that runs as long as the gateway. One may admit connections of nodes. */
export interface Service extends Partial<NodeDoor>, Partial<Watch> {
  close(): Promise<void>;
}

/** The services that run, by the name of their feature. */
export type Services = ReadonlyMap<string, Service>;

/** The code behind a stored deadline. */
export interface TimerCode {
  createHandler(parts: FeatureParts): DeadlineHandler;
  /** Computes calendar dates again after the clock was set back. */
  planAgain?(engine: Engine): Promise<void>;
}

export interface FeatureTimer {
  /** Whether this gateway handles what is due. If not, it stays stored for one that does. Default: yes. */
  isOn?(settings: Settings): boolean;
  readonly load: Load<TimerCode>;
}

export interface FeatureTool extends ToolEntry {
  /** Returns why a session may not use the tool, or undefined if it may. Default: it may. */
  denied?(chain: SpawnChain, settings: Settings): string | undefined;
  /** Returns the part that it works with. Without one, it is not offered, and calls fail with `otherwise`. */
  readonly needs?: { part(services: Services): Promise<unknown>; readonly otherwise: Failure };
  /** Whether sessions of external programs do not have it. */
  readonly isInternal?: true;
  // biome-ignore lint/suspicious/noExplicitAny: each tool declares the parts of the context that it needs
  readonly load: Load<{ readonly tool: Tool<any> }>;
}

/**
 * An HTTP route. Its path ends with `*` if it takes everything below it. Routes with the same `load` have one
 * door. A request for which the door returns undefined gets the answer for an unknown path.
 */
export interface FeatureRoute {
  /** The route in the answer to an unknown path. Absent: it is not named there. */
  readonly shown?: string;
  /** Whether a request needs a token of the gateway. If not, the route itself checks who sends it. */
  readonly needsToken: boolean;
  /** Returns the body of an error, and whether the same request may be sent again. Default: Parley's own. */
  formatError?(failure: Failure, redactor: Redactor): { readonly body: object; readonly retry: boolean };
  readonly load: Load<{
    createDoor(parts: RouteParts): (...request: Parameters<Door>) => Promise<Response | undefined>;
  }>;
}

/** The parts that a runtime gets. */
export interface RuntimeParts extends FeatureParts {
  readonly world: World;
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The command that starts this program. */
  readonly launcher: readonly string[];
  readonly passes: Passes;
  readonly guidance?: GuidanceFiles;
  /** Returns the address of the gateway for programs of this machine. */
  gatewayUrl(): string;
}

/** A run that something outside of this gateway executes. */
export interface OutsideRun extends Pick<ServiceParts, "settings" | "world"> {
  readonly handle: LaneHandle;
  readonly session: Session;
  /** Absent for an agent of a peer. */
  readonly agent?: AgentSettings;
  readonly entries: readonly Entry[];
  readonly context?: string | undefined;
  readonly trace?: RunTrace | undefined;
}

export interface OutsideRuntime {
  turn(run: OutsideRun): Promise<TurnEnd | EndFacts>;
  /** Is called after a run was aborted, even if no process executed it. */
  noteAborted?(run: Run): Promise<void>;
  /** Returns the sessions whose programs are running. */
  programs?(): readonly string[];
  close?(): Promise<void>;
}

/** Executes the turns of agents outside of this gateway. */
export interface FeatureRuntime {
  /** Settings in `agents.list[].runtime`. Absent: no agent of the configuration has this type. */
  readonly settings?: {
    readonly summary: string;
    readonly fields: Fields;
    /** Reports what an agent lacks, or has although its runtime is of another type. */
    check(given: object, tell: (name: string, text: string) => void): void;
    /** Says what to do instead of setting `model`. Default: leave it out. */
    readonly model?: string;
  };
  readonly load: Load<{ openRuntime(parts: RuntimeParts): OutsideRuntime }>;
}

/** The parts of a channel to programs. `tokens`: the gateway's own one, and those of the configuration. */
export interface OutboxParts extends Pick<ServiceParts, "settings" | "world"> {
  readonly db: Db;
  readonly commit: Commit;
  readonly tokens: readonly TokenSettings[];
}

/** Tells programs what happened: makes the requests for rows of the outbox. */
export interface OutboxCode {
  createChannel(parts: OutboxParts): Channel;
  /** Returns the routes of the programs in the settings. Default: clients name them. */
  routes?(settings: Settings): readonly Route[];
  /** Returns the function that writes the rows of a transaction's events. `drop` counts those left out. */
  createRecorder?(settings: Settings, drop: (program: string) => void): Recorder;
}

/** The result of a check of `parley doctor`. */
export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** How to fix the problem. */
  readonly mend?: string;
}

export interface Feature {
  /** The name of its folder. */
  readonly name: string;
  /** The features whose code it imports. */
  readonly needs?: readonly string[];
  /** Sections of the configuration file. The settings have them under the same names. */
  readonly settings?: Readonly<Record<string, Setting>>;
  /** Returns sections as runs get them. `checkAgent` reports a name that is not one of an agent. */
  readSettings?(file: object, checkAgent: (name: string, path: Path) => void): object;
  /** Returns what is wrong with the settings, beyond their schema. */
  problems?(settings: Settings): readonly Problem[];
  /** A chat platform. Its channel has the name of the feature. */
  readonly channel?: Platform;
  readonly tables?: Readonly<Record<string, Table>>;
  /** Kinds of rows that give rights, which a restore copies only if a person has accepted them. */
  readonly grants?: Readonly<
    Record<
      string,
      Omit<GrantRows, "tables"> & { readonly tables: readonly string[]; readonly summary: string }
    >
  >;
  readonly methods?: Readonly<Record<string, MethodSpec>>;
  readonly handlers?: Load<Readonly<Record<string, MethodCode>>>;
  readonly events?: Readonly<Record<string, EventSpec>>;
  readonly tools?: Readonly<Record<string, FeatureTool>>;
  readonly commands?: Load<Commands>;
  /** Words for which people look and mean a command, with spaces between them, by the command. */
  readonly commandWords?: Readonly<Record<string, string>>;
  /** The command that does what a method does, as the hints for users of a terminal name it. */
  readonly commandFor?: Readonly<Record<string, string>>;
  /** Other forms of methods, for clients of protocol version 4. */
  readonly forms?: Load<Readonly<Record<string, object>>>;
  /** Runs as long as the gateway, if it is on. Default: it is. */
  readonly service?: {
    isOn?(settings: Settings): boolean;
    readonly load: Load<{ start(parts: ServiceParts): Service }>;
  };
  /** Loads the items that it adds to the attention list of a caller. */
  readonly attention?: Load<{ items(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> }>;
  /** Bodies of HTTP requests, by method and path. */
  readonly bodies?: Readonly<Record<`POST /${string}`, BodySpec>>;
  /** HTTP routes, by path. */
  readonly routes?: Readonly<Record<string, FeatureRoute>>;
  /** Timers, by the kind of their deadlines. */
  readonly timers?: Readonly<Record<string, FeatureTimer>>;
  /** Runtimes of agents, by `runtime.type`; `peer`: that of agents of peers. */
  readonly runtimes?: Readonly<Record<string, FeatureRuntime>>;
  /** Is called in the transaction that ends one of its runs. */
  readonly runEnded?: {
    isOwn(run: Run): boolean;
    readonly load: Load<{ runEnded(unit: Unit, run: Run): Promise<void> }>;
  };
  /** A check of `parley doctor`, and what it is about. It is skipped if that is nothing. */
  readonly doctor?: {
    subjects(settings: Settings): readonly string[];
    /** Whether it reaches beyond this machine, which `--offline` forbids. */
    readonly isOutside: boolean;
    readonly load: Load<{ check(cli: Cli, settings: Settings): Promise<Finding[]> }>;
  };
  /** Loads what tells programs what happened. */
  readonly outbox?: Load<OutboxCode>;
  /** Loads the check whose warnings are told at a start. `show` redacts a text. */
  readonly checks?: Load<{
    warnings(db: Db, settings: Settings, show: (text: string) => string): Promise<readonly string[]>;
  }>;
}

/** Declares a feature. The types of its settings, tables, methods, events and tools stay known. */
export const feature = <const F extends Feature>(declared: F): F => declared;
