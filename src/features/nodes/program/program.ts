// Runs this machine as a node: requests pairing, connects, runs commands, and reconnects if the connection is
// lost.
// Each command runs once per idempotency key, as long as this program runs. A cancelled command is stopped.
// The program exits only if retrying cannot help: if the token is wrong, or if another program uses the same
// key.

import type { Address } from "../../../cli/address.ts";
import { type Cli, EXIT } from "../../../cli/cli.ts";
import { connect, type DeviceKey, type GatewayClient, GatewayError } from "../../../contract/client/node.ts";
import { NODE_REPLACED } from "../../../contract/protocol.ts";
import { grownPause } from "../../../core/backoff.ts";
import { evictOldest } from "../../../core/bounded.ts";
import { head } from "../../../core/text/cut.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { pause } from "../../../world/pause.ts";
import type { NodeCall } from "../node.ts";
import type { nodeCommands, Outcome } from "./commands.ts";

const PAIRING_LOOK_MS = 3_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Number of outcomes remembered by idempotency key. */
const OUTCOMES_KEPT = 200;
const PARAMS_MAX_CHARS = 1024 * 1024;

export interface NodeProgramParts {
  readonly cli: Cli;
  readonly address: Address;
  readonly key: DeviceKey;
  readonly name: string;
  readonly version: string;
  readonly commands: ReturnType<typeof nodeCommands>;
  /** Aborting this signal ends the program. */
  readonly stop: AbortSignal;
}

type Invocation = Required<NodeCall> & { readonly id: string };

/** Parses a command from the gateway. Returns undefined if it is invalid. */
function readInvocation(payload: unknown): Invocation | undefined {
  const given = payload as Partial<Record<keyof Invocation | "paramsJSON", unknown>> | null;
  const { id, nodeId, command, paramsJSON, timeoutMs, idempotencyKey } = given ?? {};
  if (typeof id !== "string" || typeof nodeId !== "string" || typeof command !== "string") return undefined;
  const time = typeof timeoutMs === "number" && timeoutMs > 0 ? timeoutMs : 30_000;
  const key = typeof idempotencyKey === "string" ? idempotencyKey : id;
  const text = typeof paramsJSON === "string" ? paramsJSON : "null";
  if (text.length > PARAMS_MAX_CHARS) return undefined;
  try {
    return { id, nodeId, command, params: JSON.parse(text), timeoutMs: time, idempotencyKey: key };
  } catch {
    return undefined;
  }
}

export class NodeProgram {
  readonly #parts: NodeProgramParts;
  readonly #outcomes = new Map<string, Promise<Outcome>>();
  readonly #running = new Map<string, AbortController>();
  /**
   * The last pairing code and the last error that were printed. A retry does not print the same one again.
   */
  #shownCode = "";
  #shownError = "";
  #failures = 0;

  constructor(parts: NodeProgramParts) {
    this.#parts = parts;
  }

  /** Runs until the program is stopped or cannot continue. Resolves with the exit code. */
  async run(): Promise<number> {
    const { stop } = this.#parts;
    while (!stop.aborted) {
      const client = await this.#connect();
      if (typeof client === "number") return client;
      if (client === undefined) continue;
      const code = await this.#serve(client);
      client.close();
      if (code !== undefined) return code;
    }
    for (const work of this.#running.values()) work.abort();
    // Wait for the stopped commands to exit.
    await Promise.all(this.#outcomes.values());
    return EXIT.done;
  }

  /**
   * Connects to the gateway. Returns undefined if the caller should retry, and an exit code if retrying
   * cannot help.
   */
  async #connect(): Promise<GatewayClient | number | undefined> {
    const { cli, address, key, name, version, commands, stop } = this.#parts;
    try {
      const client = await connect({
        url: address.url,
        ...(address.token === "" ? {} : { token: address.token }),
        role: "node",
        device: key,
        caps: [],
        commands: Object.keys(commands),
        client: { id: "parley-node", displayName: name, version, mode: "node" },
        signal: stop,
        world: cli.parts.world,
      });
      this.#failures = 0;
      this.#shownCode = "";
      this.#shownError = "";
      return client;
    } catch (error) {
      if (stop.aborted) return undefined;
      if (!(error instanceof GatewayError)) throw error;
      return this.#takeRefusal(error);
    }
  }

  async #takeRefusal(error: GatewayError): Promise<number | undefined> {
    const { cli } = this.#parts;
    if (error.code === "NOT_PAIRED") {
      this.#showPairingCode(error);
      await this.#pause(PAIRING_LOOK_MS);
      return undefined;
    }
    if (!error.retryable && error.code !== "RATE_LIMITED") {
      return cli.fail({ code: error.reason ?? error.code, error: error.message }, EXIT.failed);
    }
    if (this.#shownError !== error.message) cli.note(safeLine(`${error.message} Retrying.`));
    this.#shownError = error.message;
    const backoffMs = grownPause(RETRY_FIRST_MS, RETRY_MAX_MS, this.#failures++);
    await this.#pause(Math.max(error.retryAfterMs ?? 0, backoffMs * (0.5 + cli.parts.world.random() / 2)));
    return undefined;
  }

  #showPairingCode(error: GatewayError): void {
    const pairing = error.details.pairing as { code?: unknown } | undefined;
    const code = typeof pairing?.code === "string" ? safeLine(head(pairing.code, 32)) : "";
    const text = code === "" ? safeLine(error.message) : code;
    if (text === this.#shownCode) return;
    this.#shownCode = text;
    const { cli } = this.#parts;
    if (code === "") cli.note(text);
    else
      cli.note(
        `This node is not paired yet. Approve it at the gateway: npx parley-gateway node approve ${code}`,
      );
  }

  /**
   * Runs commands until the connection is closed. Resolves with an exit code if the program must not
   * reconnect.
   */
  #serve(client: GatewayClient): Promise<number | undefined> {
    const { cli, address, name, stop } = this.#parts;
    cli.note(safeLine(`Connected to ${address.url} as "${name}".`));
    return new Promise((resolve) => {
      const offs: (() => void)[] = [];
      const end = (code: number | undefined): void => {
        for (const off of offs.splice(0)) off();
        resolve(code);
      };
      const endConnection = (): void => end(undefined);
      stop.addEventListener("abort", endConnection, { once: true });
      offs.push(
        () => stop.removeEventListener("abort", endConnection),
        client.on("node.invoke.request", (payload) => void this.#onInvoke(client, payload)),
        client.on("node.invoke.cancel", ({ id }) => this.#running.get(id)?.abort()),
        client.onState((state, error) => {
          if (error?.message.includes(NODE_REPLACED) === true) {
            const text = "The gateway disconnected this program, because another one uses the same key.";
            end(
              cli.fail({
                code: "replaced",
                error: text,
                hint: "Use a separate key for each program: --key FILE",
              }),
            );
          } else if (state === "connected") cli.note("Reconnected.");
          else if (state === "closed") end(undefined);
          else cli.note(safeLine(`${error?.message ?? "The connection was lost"}; reconnecting.`));
        }),
      );
      if (stop.aborted) end(undefined);
    });
  }

  async #onInvoke(client: GatewayClient, payload: unknown): Promise<void> {
    const invocation = readInvocation(payload);
    if (invocation === undefined) return;
    const { id, nodeId, idempotencyKey } = invocation;
    const known = this.#outcomes.get(idempotencyKey);
    const work = known ?? this.#work(invocation);
    if (known === undefined) {
      this.#outcomes.set(idempotencyKey, work);
      evictOldest(this.#outcomes, OUTCOMES_KEPT);
    }
    const outcome = await work;
    const result = outcome.ok
      ? { ok: true, payloadJSON: JSON.stringify(outcome.payload) }
      : { ok: false, error: outcome.error };
    // Ignore a failed request: if the connection was lost, the gateway has already reported a failure to the
    // caller.
    await client.request("node.invoke.result", { id, nodeId, ...result }).catch(() => undefined);
  }

  async #work({ id, command, params, timeoutMs }: Invocation): Promise<Outcome> {
    const { cli, commands } = this.#parts;
    const run = Object.hasOwn(commands, command) ? commands[command] : undefined;
    if (run === undefined) {
      const message = `unknown command; this node offers ${Object.keys(commands).join(", ")}`;
      return { ok: false, error: { code: "UNKNOWN_COMMAND", message } };
    }
    const control = new AbortController();
    this.#running.set(id, control);
    try {
      const outcome = await run({ params, timeoutMs, signal: control.signal });
      const result = outcome.ok ? "done" : `refused: ${outcome.error.message}`;
      cli.note(safeLine(`${command}: ${result}`));
      return outcome;
    } catch (error) {
      cli.parts.world.log.error({ err: error }, "a command failed");
      return {
        ok: false,
        error: { code: "FAILED", message: "the command failed on the node; see the log of the node" },
      };
    } finally {
      this.#running.delete(id);
    }
  }

  #pause(ms: number): Promise<void> {
    const { cli, stop } = this.#parts;
    return pause(cli.parts.world.clock, ms, stop, "alive");
  }
}
