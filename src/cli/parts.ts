// Owns what the command line is given by `main.ts`: streams, environment, signals and the means to start a
// gateway.
// PT1: a command reaches the process, the store and the rest of the program only through these parts, so
//      that a test can hold every one of them.

import type { ChannelAccount } from "../core/channel-settings.ts";
import type { Result } from "../core/errors.ts";
import type { HostProgram, HostProgramEnd } from "../core/node-exec.ts";
import type { KeyRules } from "../core/session-key.ts";
import type { ProviderSettings, SandboxSettings, Settings, StoreSettings } from "../core/settings.ts";
import type { World } from "../world.ts";

export interface GatewayOptions {
  /** Ends the wait for a database server that is away. Absent: that is a failure at once. */
  readonly stop?: AbortSignal;
  /** Default: `PARLEY_CONFIG`, else `~/.parley/parley.json5`. */
  readonly configPath?: string;
  /** Goes before the configuration's. 0: any free port. */
  readonly port?: number;
  /** Goes before the configuration's. */
  readonly host?: string;
  /** Only errors are logged. Default: as the world's log. */
  readonly quiet?: boolean;
}

/** A gateway in this process that takes connections. */
export interface RunningGateway {
  /** `ws://host:port` */
  readonly url: string;
  /** `http://host:port` */
  readonly httpUrl: string;
  readonly token: string;
  /** The token is the one from the store directory, not from configuration or environment. */
  readonly tokenIsGenerated: boolean;
  readonly settings: Settings;
  readonly configPath: string;
  readonly warnings: readonly string[];
  /** Finishes or parks running work within `graceMs`, then closes everything. */
  close(graceMs: number): Promise<void>;
}

/** What is the matter with a store directory, found out without changing it. */
export interface StoreReport {
  /** `absent`: there is none yet, it is made at the first start. `in_use`: a gateway holds it. */
  readonly state: "absent" | "free" | "in_use" | "problem";
  /** For people: who holds it, or what is wrong and the way out. */
  readonly text: string;
  /** Objects of the schema that differ from those that this program makes, as `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** The damage of the content, and the way out. */
  readonly damage?: string;
}

export interface StoreTally {
  readonly sessions: number;
  readonly messages: number;
  readonly runs: number;
  /** Accepted and not ended: a gateway that starts on the store goes on with them. */
  readonly unfinishedRuns: number;
  readonly pendingDeliveries: number;
}

/** A gateway that shares a PostgreSQL store. */
export interface StoreProcess {
  readonly processId: string;
  readonly host: string;
  readonly version: string;
  readonly startedAt: number;
  readonly beatAt: number;
  readonly alive: boolean;
}

/** What a store holds, and who uses it. */
export interface StoreFacts {
  readonly kind: "embedded" | "postgres";
  /** In words without secrets. */
  readonly place: string;
  /** `version` absent: there is no store yet. `known`: what this program writes. */
  readonly schema: { readonly version?: number; readonly known: number };
  readonly holds?: { readonly tally: StoreTally; readonly bytes: number };
  /** Embedded: whether a gateway has it. */
  readonly use?: string;
  /** PostgreSQL: also those that died a short time ago. */
  readonly processes?: readonly StoreProcess[];
}

/** A whole store that was moved. */
export interface StoreMove {
  /** In words without secrets. */
  readonly from: string;
  readonly to: string;
  readonly tally: StoreTally;
  /** Of a backup's file. */
  readonly bytes?: number;
  /** Objects of the source's schema that were left out, such as `trigger "x"`. */
  readonly leftOut?: readonly string[];
}

/** A store that was rebuilt. */
export interface StoreRecovery extends StoreMove {
  /** The folder with the old files. */
  readonly kept: string;
  readonly sessionsFromCopies: number;
  readonly messagesFromCopies: number;
  /** Tables of which not every row could be read. */
  readonly incomplete: readonly string[];
  /** Lines of JSONL copies that could not be read. */
  readonly unreadLines: number;
}

/** Who waits for a move. */
export interface MoveWatch {
  /** Nothing of a move that it ends stays. */
  readonly signal: AbortSignal;
  /** Called now and then with the number of rows so far. */
  copied(rows: number): void;
}

/** The store as the command line has it in hand. */
export interface StoreTools {
  show(settings: StoreSettings): Promise<Result<StoreFacts>>;
  migrate(settings: StoreSettings, url: string, watch: MoveWatch): Promise<Result<StoreMove>>;
  backup(settings: StoreSettings, file: string, watch: MoveWatch): Promise<Result<StoreMove>>;
  restore(settings: StoreSettings, file: string, watch: MoveWatch): Promise<Result<StoreMove>>;
  recover(settings: StoreSettings, keys: KeyRules, watch: MoveWatch): Promise<Result<StoreRecovery>>;
}

/** What is the matter with a PostgreSQL store, found out without changing it. */
export interface DatabaseReport {
  readonly place: string;
  /** The server's version. */
  readonly server: string;
  readonly schema: { readonly name: string; readonly version?: number; readonly known: number };
  /** Objects of the schema that differ from those that this program makes, as `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** Statements that give the user what a gateway needs and it lacks. */
  readonly missingRights: readonly string[];
  /** This machine's clock minus the database's. */
  readonly clockAheadMs: number;
  /** `max`: for all together. `others`: that no gateway has. `ofProcess`: of one gateway at most. */
  readonly connections: { readonly max: number; readonly others: number; readonly ofProcess: number };
  /** Settings of the server by which a commit may be lost. */
  readonly unsafe: readonly string[];
  readonly processes: readonly StoreProcess[];
  /** Of this program. */
  readonly version: string;
}

/** Whether tool calls can be contained on this machine, found out by containing something. */
export interface SandboxReport {
  readonly usable: boolean;
  /** For people: which backend works, or what is wrong with each. */
  readonly text: string;
  /** How to get one that works. */
  readonly mend?: string;
}

export interface ImportWanted {
  readonly dir: string;
  readonly configPath?: string;
  readonly dryRun: boolean;
  /** Names of settings that have to be accepted, or `all`. */
  readonly accept: readonly string[];
  /** Asks about each other one. Absent: they are left out. */
  readonly ask?: (setting: { readonly name: string; readonly text: string }) => Promise<Result<boolean>>;
  /** Ends it between two sessions. */
  readonly signal: AbortSignal;
  /** Called after each session with how many there were so far. */
  progress(sessions: number): void;
}

/** What an import from outside has done, or would do. */
export interface ImportFacts {
  readonly from: string;
  /** In words without secrets. */
  readonly to: string;
  readonly dryRun: boolean;
  readonly interrupted: boolean;
  readonly config: {
    readonly kind: "written" | "proposed" | "there" | "none";
    readonly path?: string;
    readonly notes: readonly string[];
    readonly left: readonly string[];
    readonly trusted: readonly {
      readonly name: string;
      readonly text: string;
      readonly accepted: boolean;
    }[];
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
  readonly remarks: readonly {
    readonly what: string;
    readonly count: number;
    readonly examples: readonly string[];
  }[];
}

/** How an outside MCP server stands, found out by starting it. */
export interface McpReport {
  readonly server: string;
  readonly usable: boolean;
  /** For people: how many tools it has, or why there are none. */
  readonly text: string;
}

/** Whether a model answers, found out by asking it for a word. */
export interface ModelReport {
  readonly usable: boolean;
  /** For people: how long it took and what it cost, or what went wrong. */
  readonly text: string;
}

/** How an account at a channel stands, found out by asking the platform. */
export interface ChannelReport {
  /** `<channel>:<account>` */
  readonly account: string;
  readonly usable: boolean;
  /** For people: who it is there, or what is wrong. */
  readonly text: string;
}

/** This program, and the machine that it runs on. */
export interface Machine {
  readonly version: string;
  readonly hostName: string;
  readonly platform: string;
  /** How this program is started again: absolute paths of Node and of `bin/parley.js`. */
  readonly launcher: { readonly node: string; readonly script: string };
  /** Absent where users have no numbers. 0: root. */
  readonly userId?: number;
}

export interface CliParts {
  readonly world: World;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home directory. */
  readonly home: string;
  /** As in `process.versions.node`. */
  readonly nodeVersion: string;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Both standard input and standard output are terminals. */
  readonly isTTY: boolean;
  /** Calls `fire` at every such signal until the returned function is called. */
  onSignal(name: "SIGINT" | "SIGTERM", fire: () => void): () => void;
  /** Ends the process at once. */
  exitNow(code: number): void;
  openGateway(options: GatewayOptions): Promise<Result<RunningGateway>>;
  /** Rejects when it could not be started. */
  runProgram(program: HostProgram): Promise<HostProgramEnd>;
  readonly machine: Machine;
  inspectStore(dir: string): Promise<StoreReport>;
  /** The same, and all of the store is read, after it was compared as by a start. */
  checkStore(settings: StoreSettings): Promise<StoreReport>;
  inspectDatabase(url: string): Promise<Result<DatabaseReport>>;
  readonly store: StoreTools;
  importState(wanted: ImportWanted): Promise<Result<ImportFacts>>;
  /** For the backend (and image) that an agent's settings ask for. Absent: nothing can look. */
  inspectSandbox?(wanted: SandboxSettings): Promise<SandboxReport>;
  /** Asks a model, `<provider>/<model>`, for one word. Absent: nobody can ask. */
  inspectModel?(providers: readonly ProviderSettings[], ref: string): Promise<ModelReport>;
  /** What the settings need and this install lacks, and how to come by it. Undefined: nothing. */
  missingFor?(settings: Settings): Promise<string | undefined>;
  /** Starts every outside MCP server of the settings, and stops it again. Absent: nothing can look. */
  inspectMcp?(settings: Settings): Promise<McpReport[]>;
  /** Asks the platform of each account who it is there. Absent: nothing can ask. */
  inspectChannels?(accounts: readonly ChannelAccount[]): Promise<ChannelReport[]>;
}
