// A real gateway process. The real launcher starts it with its own home, disk and socket. It is signalled
// only by its pid.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import { publishGateway } from "../../../src/world/gateway-address.ts";
import { cleanup, putEmptyStore, temporaryFolder } from "../engine/engine.ts";
import { PATIENCE_MS } from "../until.ts";
import { addressOf, launch, TOKEN, writeHome } from "./fleet.ts";

export interface GatewayProcess {
  readonly url: string;
  readonly httpUrl: string;
  readonly token: string;
  readonly home: string;
  readonly pid: number;
  /** Returns the output of the process so far. */
  stdout(): string;
  stderr(): string;
  connect(): Promise<GatewayClient>;
  /** Sends the signal. Resolves with the exit code, or null if the signal ended the process. */
  end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | null>;
  signal(signal: "SIGTERM" | "SIGINT"): void;
  readonly exited: Promise<number | null>;
}

export interface ProcessOptions {
  /** The configuration, to which the token and a free port are added. */
  readonly config?: Record<string, unknown>;
  /** The home folder of an earlier gateway, so that the same store is used. Default: a new folder. */
  readonly home?: string;
  /** Environment variables in addition to those for the home folder. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes a home folder with a configuration. */
export function homeWith(config: Record<string, unknown>): string {
  const home = temporaryFolder(tmpdir());
  writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } }, ...config });
  return home;
}

/** Makes a home folder whose gateway is the one that this process runs, or pretends to run, at this port. */
export function homeOf(port: number, token: string): string {
  const home = homeWith({ gateway: { port, auth: { token } } });
  cleanup(publishGateway(join(home, ".parley", "state"), { url: `ws://127.0.0.1:${port}` }));
  return home;
}

export async function startProcess(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const home = options.home ?? homeWith(options.config ?? {});
  if (options.config?.store === undefined) await putEmptyStore(join(home, ".parley", "state"));
  const child = launch(home, ["gateway"], [], options.env);
  let stdout = "";
  let stderr = "";
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const running = { value: true };
  void exited.then(() => {
    running.value = false;
  });
  cleanup(async () => {
    if (running.value) child.kill("SIGKILL");
    await exited;
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  const httpUrl = await addressOf(child);
  const url = httpUrl.replace("http", "ws");
  return {
    url,
    httpUrl,
    token: TOKEN,
    home,
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    async connect() {
      const client = await connect({ url, token: TOKEN, reconnect: false, connectTimeoutMs: PATIENCE_MS });
      cleanup(() => client.close());
      return client;
    },
    signal: (signal) => void child.kill(signal),
    async end(signal) {
      child.kill(signal);
      return exited;
    },
  };
}
