// The dependencies that `main.ts` passes to the command line: streams, environment, signals, functions that
// start a gateway or inspect things. Commands use the process and the store only through these functions, so
// that tests can replace each of them.

import type { HostProgram, HostProgramEnd } from "../core/rules/node-exec.ts";
import type { Result } from "../core/shapes/errors.ts";
import type { ChainRecord, FirstMessage } from "../core/shapes/record/chain.ts";
import type { Variation } from "../core/shapes/record/variation.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import type {
  A2aRuntime,
  ProviderSettings,
  SandboxSettings,
  Settings,
  StoreSettings,
} from "../core/shapes/settings/settings.ts";
import type { World } from "../world.ts";

export interface GatewayOptions {
  /**
   * If the database is unreachable, the start waits for it until this signal is aborted. If absent, the start
   * fails at once.
   */
  readonly stop?: AbortSignal;
  /** Default: `PARLEY_CONFIG`, else `~/.parley/parley.json5`. */
  readonly configPath?: string;
  /** The port to use instead of the configured one. 0: any free port. */
  readonly port?: number;
  /** The host to use instead of the configured one. */
  readonly host?: string;
  /** True: log only errors. Default: the level of the world's log. */
  readonly quiet?: boolean;
  /** Time before each answer of the offline model. Default 0. */
  readonly offlineThinkMs?: number;
}

/** A running gateway in this process. */
export interface RunningGateway {
  /** `ws://host:port` */
  readonly url: string;
  /** `http://host:port` */
  readonly httpUrl: string;
  readonly token: string;
  /** True if the gateway generated the token in the store directory, false if the token is configured. */
  readonly tokenIsGenerated: boolean;
  readonly settings: Settings;
  readonly configPath: string;
  readonly warnings: readonly string[];
  /** Reads the configuration file at once. Absent if the gateway does not follow it. */
  readonly reload?: () => void;
  /** Drops what can be read again, to save memory. */
  emptyCaches(): void;
  /**
   * Lets running work finish within `graceMs` and stores the rest for the next start. Then closes everything.
   */
  close(graceMs: number): Promise<void>;
}

/** Facts about a store directory. Inspecting it changes nothing. */
export interface StoreReport {
  /** `absent`: the first start of a gateway creates the store. `in_use`: a running gateway holds it. */
  readonly state: "absent" | "free" | "in_use" | "problem";
  /** Text for people: names the process that holds the store, or the problem and its fix. */
  readonly text: string;
  /** Schema objects that differ from the expected ones, like `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** Description of damaged content, and how to fix it. */
  readonly damage?: string;
}

export interface StoreTally {
  readonly sessions: number;
  readonly messages: number;
  readonly runs: number;
  /** Runs that were accepted and have not ended. A gateway that starts on this store continues them. */
  readonly unfinishedRuns: number;
  readonly pendingDeliveries: number;
}

/** A gateway that shares a PostgreSQL store. */
export interface StoreProcess {
  readonly processId: string;
  readonly host: string;
  readonly version: string;
  /** Digest of the configuration that it runs. Absent if unknown. */
  readonly configRevision?: string;
  readonly startedAt: number;
  readonly beatAt: number;
  readonly alive: boolean;
}

/** Contents and users of a store. */
export interface StoreFacts {
  readonly kind: "embedded" | "postgres";
  /** The store's address for people, without secrets. */
  readonly place: string;
  /** `version`: absent if the store does not exist. `known`: the version that this program writes. */
  readonly schema: { readonly version?: number; readonly known: number };
  readonly holds?: { readonly tally: StoreTally; readonly bytes: number };
  /** For an embedded store: a text that says whether a gateway is using it. */
  readonly use?: string;
  /** For a PostgreSQL store: its gateways, including those that stopped recently. */
  readonly processes?: readonly StoreProcess[];
}

/** Result of a migration, backup or restore. */
export interface StoreMove {
  /** The source's address for people, without secrets. */
  readonly from: string;
  readonly to: string;
  readonly tally: StoreTally;
  /** Size of the backup file. */
  readonly bytes?: number;
  /** Schema objects of the source that were not copied, like `trigger "x"`. */
  readonly leftOut?: readonly string[];
  /** Rows of a backup that give rights and were not restored. */
  readonly withheld?: readonly StoreGrants[];
}

/** Rows of a backup that give rights, by kind. */
export interface StoreGrants {
  readonly kind: "rules" | "nodes" | "peers" | "people" | "jobs" | "memory" | "tokens" | "keys";
  readonly count: number;
  readonly lines: readonly string[];
}

/** Result of a recovery. */
export interface StoreRecovery extends StoreMove {
  /** The folder to which the old files were moved. */
  readonly kept: string;
  /** Tables with unreadable rows. */
  readonly incomplete: readonly string[];
  /** The backup from which lost sessions and messages come. */
  readonly backup?: string;
}

/** Lets the caller cancel a move and follow its progress. */
export interface MoveWatch {
  /** Cancels the move and undoes its changes. */
  readonly signal: AbortSignal;
  /** Called again and again. `rows`: the number of rows that were copied so far. */
  copied(rows: number): void;
}

export interface RestoreWatch extends MoveWatch {
  /** Chooses the kinds of rows that give rights to restore. */
  accept(grants: readonly StoreGrants[]): Promise<readonly StoreGrants["kind"][]>;
}

/** Operations on a whole store. */
export interface StoreTools {
  show(settings: StoreSettings): Promise<Result<StoreFacts>>;
  migrate(settings: StoreSettings, url: string, watch: MoveWatch): Promise<Result<StoreMove>>;
  backup(settings: StoreSettings, file: string, watch: MoveWatch): Promise<Result<StoreMove>>;
  restore(settings: StoreSettings, file: string, watch: RestoreWatch): Promise<Result<StoreMove>>;
  recover(settings: StoreSettings, watch: MoveWatch): Promise<Result<StoreRecovery>>;
}

/** Facts about a PostgreSQL store. Inspecting it changes nothing. */
export interface DatabaseReport {
  readonly place: string;
  /** The server's version. */
  readonly server: string;
  readonly schema: { readonly name: string; readonly version?: number; readonly known: number };
  /** Schema objects that differ from the expected ones, like `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** SQL statements that grant the missing rights. */
  readonly missingRights: readonly string[];
  /** The time of this machine's clock minus the time of the database's clock. */
  readonly clockAheadMs: number;
  /**
   * `max`: the server's limit. `others`: number that other programs use. `ofProcess`: maximum of one gateway.
   */
  readonly connections: { readonly max: number; readonly others: number; readonly ofProcess: number };
  /** Settings of the server with which a commit can be lost. */
  readonly unsafe: readonly string[];
  readonly processes: readonly StoreProcess[];
  /** Version of this program. */
  readonly version: string;
}

/** Result of testing the sandbox on this machine. */
export interface SandboxReport {
  readonly usable: boolean;
  /** Text for people: the backend that works, or for each backend the reason why it does not work. */
  readonly text: string;
  /** How to fix the problem. */
  readonly mend?: string;
}

export interface ImportWanted {
  readonly dir: string;
  readonly configPath?: string;
  readonly dryRun: boolean;
  /** Names of settings or groups that the user accepts, or `all`. */
  readonly accept: readonly string[];
  /** Whether agents use the accepted workspaces where they are, instead of copies. */
  readonly link: boolean;
  /**
   * Asks the user about each setting that must be accepted and is not. If absent, such settings are left out.
   */
  readonly ask?: (setting: ImportedRight) => Promise<Result<boolean | "link">>;
  /** Stops the import after the current session. */
  readonly signal: AbortSignal;
  /** Called after each session. `sessions`: the number of sessions so far. */
  progress(sessions: number): void;
}

/** A setting that the user must accept. */
export interface ImportedRight {
  readonly name: string;
  readonly group: string;
  readonly text: string;
  /** Whether neither its group nor `all` accepts it. */
  readonly byName?: boolean;
}

/** How many of one kind an import wrote, and how many were already here. */
interface ImportedCount {
  readonly added: number;
  readonly unchanged: number;
}

/** Result of an import or a dry run. */
export interface ImportFacts {
  readonly from: string;
  /** The target's address for people, without secrets. */
  readonly to: string;
  readonly dryRun: boolean;
  readonly interrupted: boolean;
  readonly config: {
    readonly kind: "written" | "proposed" | "there" | "none";
    readonly path?: string;
    readonly notes: readonly string[];
    readonly left: readonly string[];
    readonly trusted: readonly (ImportedRight & { readonly accepted: boolean })[];
  };
  readonly sessions: {
    readonly added: number;
    readonly toppedUp: number;
    readonly unchanged: number;
    readonly leftAlone: readonly { readonly key: string; readonly why: string }[];
    readonly leftAloneCount: number;
  };
  readonly entries: number;
  readonly repairs: { readonly callsWithoutResult: number; readonly resultsWithoutCall: number };
  /** Scheduled jobs, which are paused. */
  readonly jobs: ImportedCount;
  /** People who were paired at an account. */
  readonly people: ImportedCount;
  readonly nodes: ImportedCount;
  readonly workspaces: readonly {
    readonly agentId: string;
    readonly from: string;
    readonly to: string;
    readonly how: "copied" | "linked" | "unchanged";
    readonly files: number;
    readonly memory: readonly string[];
  }[];
  readonly remarks: readonly {
    readonly what: string;
    readonly count: number;
    readonly examples: readonly string[];
  }[];
}

/** Result of starting an outside MCP server. */
export interface McpReport {
  readonly server: string;
  readonly usable: boolean;
  /** Text for people: the number of tools, or the reason why there are none. */
  readonly text: string;
}

/** Result of the test of an agent elsewhere. */
export interface RemoteReport {
  readonly usable: boolean;
  /** The agent's name and key, or the reason why it cannot be used. */
  readonly text: string;
}

/** Result of asking a model for one word. */
export interface ModelReport {
  readonly usable: boolean;
  /** Text for people: duration and cost, or the error. */
  readonly text: string;
}

/** Result of testing a channel account at the platform. */
export interface ChannelReport {
  /** `<channel>:<account>` */
  readonly account: string;
  readonly usable: boolean;
  /** Text for people: the account's name on the platform, or the problem. */
  readonly text: string;
}

/** The parley program and the machine that it runs on. */
export interface Machine {
  readonly version: string;
  readonly hostName: string;
  readonly platform: string;
  /** Absolute paths of Node and of `bin/parley.js`. A service starts this program with them. */
  readonly launcher: { readonly node: string; readonly script: string };
  /** The user's id (0: root). Absent on systems without user ids. */
  readonly userId?: number;
}

/** The result of a replay. */
export interface ReplayReport {
  readonly chainId: string;
  readonly runs: number;
  /** Number of recorded entries. */
  readonly entries: number;
  /** The first difference. Absent if there is none. */
  readonly difference?: {
    readonly runId: string;
    readonly sessionKey: string;
    readonly step: string;
    readonly expected: string;
    readonly got: string;
  };
  /** Of a replay with changes. */
  readonly varied?: {
    readonly record: ChainRecord;
    /** Number of answers that models gave. */
    readonly answers: number;
    /** Cost of these answers in USD. */
    readonly cost: number;
    /** Number of calls that were not run because the record has none like them, by tool. */
    readonly missing: Readonly<Record<string, number>>;
  };
}

export interface Question {
  /** `<provider>/<model>` */
  readonly model: string;
  readonly system: string;
  readonly text: string;
}

/** The changes of a replay, and the providers of the models that it calls. */
export interface ReplayChanges {
  readonly variation: Variation;
  readonly providers: readonly ProviderSettings[];
}

export interface CliParts {
  readonly world: World;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home directory. */
  readonly home: string;
  /** The folder in which the program was started. */
  readonly folder: string;
  /** Version of Node, in the format of `process.versions.node`. */
  readonly nodeVersion: string;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** True if both standard input and standard output are terminals. */
  readonly isTTY: boolean;
  /** Calls `fire` each time the process gets the signal `name`, until the returned function is called. */
  onSignal(name: "SIGINT" | "SIGTERM" | "SIGHUP", fire: () => void): () => void;
  /** Exits the process at once. */
  exitNow(code: number): void;
  openGateway(options: GatewayOptions): Promise<Result<RunningGateway>>;
  /** Rejects if the program could not be started. */
  runProgram(program: HostProgram): Promise<HostProgramEnd>;
  readonly machine: Machine;
  inspectStore(dir: string): Promise<StoreReport>;
  /** Like `inspectStore`, but also reads the whole store to find damage. */
  checkStore(settings: StoreSettings): Promise<StoreReport>;
  inspectDatabase(url: string): Promise<Result<DatabaseReport>>;
  readonly store: StoreTools;
  importState(wanted: ImportWanted): Promise<Result<ImportFacts>>;
  /** Asks a model one question, with instructions. Returns its text, and the cost in USD. */
  ask(
    providers: readonly ProviderSettings[],
    question: Question,
  ): Promise<Result<{ text: string; cost: number }>>;
  /**
   * Runs a recorded chain again, without changes without calling a model. With changes, it also runs a chain
   * from its first message.
   */
  replay(start: ChainRecord | FirstMessage, changes?: ReplayChanges): Promise<Result<ReplayReport>>;
  /** Tests the backend (and image) of an agent's settings. Absent if the test is not available. */
  inspectSandbox?(wanted: SandboxSettings): Promise<SandboxReport>;
  /** Tests a model (`<provider>/<model>`) by asking it for one word. Absent if the test is not available. */
  inspectModel?(providers: readonly ProviderSettings[], ref: string): Promise<ModelReport>;
  /** Returns which packages the settings need and are missing, and how to install them. */
  missingFor?(settings: Settings): Promise<string | undefined>;
  /** Starts and stops every outside MCP server of the settings. Absent if the test is not available. */
  inspectMcp?(settings: Settings): Promise<McpReport[]>;
  /** Reads and checks the card of an agent elsewhere. Absent if the test is not available. */
  inspectRemote?(runtime: A2aRuntime): Promise<RemoteReport>;
  /** Tests each account at its platform. Absent if the test is not available. */
  inspectChannels?(accounts: readonly ChannelAccount[]): Promise<ChannelReport[]>;
}
