// Starts the gateways of a demo in a temporary directory, with separate configurations and stores.
// The demo uses nothing of the user's own Parley except the model keys in the environment. The directory is
// removed at the end, also after a failure.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { optional } from "../../core/optional.ts";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { CliParts, RunningGateway } from "../parts.ts";

/** Instructions with which a real model understands the same messages as the offline model. */
const INSTRUCTIONS = [
  "You take part in a demonstration; be brief, one or two sentences. Do exactly what is asked, with tools:",
  '"list sessions" means call sessions_list.',
  '"read NAME" means call sessions_history with sessionKey "agent:NAME:main".',
  '"ask NAME: TEXT" means call sessions_send once: sessionKey "agent:NAME:main", message TEXT, as it is.',
  '"spawn N jobs: TEXT" means call sessions_spawn N times in one message: task TEXT, {n} its number.',
  '"within N seconds" means timeoutSeconds N. "wait N seconds" means run "sleep N" with exec first.',
  "Then say what the tool answered. If a call is refused, don't try another way: say what the refusal said.",
  "In a reply step ask one short question in turn 1, later answer REPLY_SKIP.",
].join("\n");

export const AGENTS = ["main", "research", "ops"] as const;

/** Settings that let the agents see and reach each other. */
export const OPEN_TOOLS = { sessions: { visibility: "all" }, agentToAgent: { enabled: true } };

export interface DemoGatewayOptions {
  /** Value of `tools` in the gateway's configuration. */
  readonly tools: object;
  /**
   * The model of the agents. Absent: a model of the first provider with a key in the environment, else the
   * offline model.
   */
  readonly model?: string;
  /** Time before each answer of the offline model. Default 0. */
  readonly offlineThinkMs?: number;
}

function configText(dir: string, token: string, { tools, model }: DemoGatewayOptions): string {
  const config = {
    gateway: { port: 0, auth: { token } },
    store: { dir: join(dir, "state"), postgresUrl: null },
    agents: {
      defaults: { workspace: join(dir, "workspace"), ...optional({ model }) },
      list: AGENTS.map((id) => ({ id, instructions: INSTRUCTIONS })),
    },
    tools,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

const STOPPED = fail("shutting_down", "the demo was stopped");

type GatewayParts = Pick<CliParts, "world" | "openGateway">;

export class DemoGateways {
  readonly #parts: GatewayParts;
  readonly #dir: string;
  readonly #gateways: Promise<Result<RunningGateway>>[] = [];
  #left = false;

  private constructor(parts: GatewayParts, dir: string) {
    this.#parts = parts;
    this.#dir = dir;
  }

  static async make(parts: GatewayParts): Promise<DemoGateways> {
    return new DemoGateways(parts, await mkdtemp(join(tmpdir(), "parley-demo-")));
  }

  async open(name: string, options: DemoGatewayOptions): Promise<Result<RunningGateway>> {
    if (this.#left) return STOPPED;
    const opening = this.#start(name, options);
    this.#gateways.push(opening);
    const opened = await opening;
    return this.#left ? STOPPED : opened;
  }

  async #start(name: string, options: DemoGatewayOptions): Promise<Result<RunningGateway>> {
    const { world, openGateway } = this.#parts;
    const configPath = join(this.#dir, `${name}.json5`);
    const token = world.ids.uuid();
    await writeFile(configPath, configText(join(this.#dir, name), token, options), { mode: 0o600 });
    const { offlineThinkMs } = options;
    return openGateway({ configPath, port: 0, quiet: true, ...optional({ offlineThinkMs }) });
  }

  /** Returns whether the demo was stopped. */
  get left(): boolean {
    return this.#left;
  }

  /** Stops the gateways: their work finishes or is parked within `graceMs`. Then removes the directory. */
  async leave(graceMs: number): Promise<void> {
    this.#left = true;
    // Wait also for gateways that are still starting: they would create the removed directory again.
    for (const ended of await Promise.allSettled(this.#gateways.splice(0))) {
      if (ended.status === "fulfilled" && ended.value.ok) await ended.value.value.close(graceMs);
    }
    await rm(this.#dir, { recursive: true, force: true });
  }
}
