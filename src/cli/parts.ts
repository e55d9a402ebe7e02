// The dependencies that `main.ts` passes to the command line: streams, environment, signals, functions that
// start a gateway or inspect things. Commands use the process and the store only through these functions, so
// that tests can replace each of them.

import type { Result } from "../core/shapes/errors.ts";
import type { HostProgram, HostProgramEnd } from "../core/shapes/host-program.ts";
import type { KeyRules } from "../core/shapes/session-key.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import type {
  ProviderSettings,
  SandboxSettings,
  Settings,
  StoreSettings,
} from "../core/shapes/settings/settings.ts";
import type { PostgresInspection } from "../store/postgres/inspect.ts";
import type { StoreFacts } from "../store/show.ts";
import type { Recovered } from "../store/transfer/recover.ts";
import type { Moved, MoveJob } from "../store/transfer/transfer.ts";
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
  /**
   * Lets running work finish within `graceMs` and stores the rest for the next start. Then closes everything.
   */
  close(graceMs: number): Promise<void>;
}

/** Lets the caller cancel a move and follow its progress. */
export type MoveWatch = Pick<MoveJob, "signal"> & Required<Pick<MoveJob, "copied">>;

export interface StoreTools {
  show(settings: StoreSettings): Promise<Result<StoreFacts>>;
  migrate(settings: StoreSettings, url: string, watch: MoveWatch): Promise<Result<Moved>>;
  backup(settings: StoreSettings, file: string, watch: MoveWatch): Promise<Result<Moved>>;
  restore(
    settings: StoreSettings,
    file: string,
    watch: MoveWatch & Required<Pick<MoveJob, "accept">>,
  ): Promise<Result<Moved>>;
  recover(settings: StoreSettings, keys: KeyRules, watch: MoveWatch): Promise<Result<Recovered>>;
}

/** Facts about a PostgreSQL store, and the version of this program. */
export type DatabaseReport = Omit<PostgresInspection, "holds"> & { readonly version: string };

/** Result of a test. */
export interface Trial {
  readonly usable: boolean;
  /** Text for people: what works, or the reason why it does not. */
  readonly text: string;
}

/** Result of testing the sandbox on this machine. */
export interface SandboxReport extends Trial {
  /** How to fix the problem. */
  readonly mend?: string;
}

/** Result of testing a channel account at the platform. */
export interface ChannelReport extends Trial {
  /** `<channel>:<account>` */
  readonly account: string;
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

export interface CliParts {
  /** The commands that hints name in place of methods of features. */
  readonly commandFor: Readonly<Record<string, string>>;
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
  inspectDatabase(url: string): Promise<Result<DatabaseReport>>;
  readonly store: StoreTools;
  /** Tests the backend (and image) of an agent's settings. Absent if the test is not available. */
  inspectSandbox?(wanted: SandboxSettings): Promise<SandboxReport>;
  /** Tests a model (`<provider>/<model>`) by asking it for one word. Absent if the test is not available. */
  inspectModel?(providers: readonly ProviderSettings[], ref: string): Promise<Trial>;
  /** Returns which packages the settings need and are missing, and how to install them. */
  missingFor?(settings: Settings): Promise<string | undefined>;
  /** Tests each account at its platform. Absent if the test is not available. */
  inspectChannels?(accounts: readonly ChannelAccount[]): Promise<ChannelReport[]>;
}
