// Defines what a feature is: one capability in one folder, with everything that it adds to the kernel. Its
// entry file holds declarations only; the code behind them is loaded at its first use.

import type { ModelCall } from "./agent/model/model.ts";
import type { Channel } from "./channels/channel.ts";
import type { Platform } from "./channels/platform.ts";
import type { Commands } from "./cli/row.ts";
import type { Schema as Setting } from "./config/schema/setting.ts";
import type { Problem } from "./config/source.ts";
import type { BodySpec } from "./contract/bodies.ts";
import type { EventSpec } from "./contract/events.ts";
import type { AttentionItem } from "./contract/methods/attention.ts";
import type { MethodSpec } from "./contract/methods/parts.ts";
import type { ToolEntry } from "./contract/tools/parts.ts";
import type { SpawnChain } from "./core/rules/sandbox-policy.ts";
import type { Failure, Result } from "./core/shapes/errors.ts";
import type { Provenance } from "./core/shapes/message.ts";
import type { Route } from "./core/shapes/route.ts";
import type { Run } from "./core/shapes/run.ts";
import type { Settings } from "./core/shapes/settings/settings.ts";
import type { Redactor } from "./core/text/redact/redact.ts";
import type { DeadlineHandler } from "./engine/deadlines.ts";
import type { Engine } from "./engine/engine.ts";
import type { Recorder, Unit } from "./engine/unit.ts";
import type { Covers } from "./gateway/attention/items.ts";
import type { CallContext, FeatureDeps } from "./gateway/call.ts";
import type { RouteParts } from "./gateway/http/http.ts";
import type { Door } from "./gateway/http/request.ts";
import type { NodeDoor } from "./gateway/socket/connection.ts";
import type { Table } from "./store/schema/definition.ts";
import type { Db } from "./store/sql.ts";
import type { GrantRows } from "./store/transfer/grants.ts";
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

/** An HTTP route. Its path ends with `*` if it takes everything below it. */
export interface FeatureRoute {
  /** The route in the answer to an unknown path. */
  readonly shown: string;
  /** Whether a request needs a token of the gateway. If not, the route itself checks who sends it. */
  readonly needsToken: boolean;
  /** Returns the body of an error, and whether the same request may be sent again. Default: Parley's own. */
  formatError?(failure: Failure, redactor: Redactor): { readonly body: object; readonly retry: boolean };
  readonly load: Load<{ createDoor(parts: RouteParts): Door }>;
}

/** Sends events to programs: writes rows of the outbox, and makes the requests. */
export interface OutboxCode {
  /** Returns the routes of the programs in the settings. */
  routes(settings: Settings): readonly Route[];
  /** Returns the function that writes the rows of a transaction's events. `drop` counts those left out. */
  createRecorder(settings: Settings, drop: (program: string) => void): Recorder;
  createChannel(settings: Settings, world: World): Channel;
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
  /** Is called in the transaction that ends a run whose message has a provenance of this kind. */
  readonly runEnded?: {
    readonly of: Provenance["kind"];
    readonly load: Load<{ runEnded(unit: Unit, run: Run): Promise<void> }>;
  };
  readonly outbox?: Load<OutboxCode>;
  /** Loads checks: `warnings` are told at a start, `findings` by `parley doctor`. `show` redacts a text. */
  readonly checks?: Load<{
    warnings?(db: Db, settings: Settings, show: (text: string) => string): Promise<readonly string[]>;
    findings?(settings: Settings): Promise<readonly Finding[]>;
  }>;
}

/** Declares a feature. The types of its settings, tables, methods, events and tools stay known. */
export const feature = <const F extends Feature>(declared: F): F => declared;
