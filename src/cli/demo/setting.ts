// Owns where the demo plays: a temporary directory with configurations and stores of its own, and the
// gateways in it.
// DS1: nothing of the user's own Parley is read or written but the model keys in the environment.
// DS2: the directory is gone afterwards, however the demo ended.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cli } from "../cli.ts";
import { type Link, openLink, type Reply } from "../link.ts";
import type { RunningGateway } from "../parts.ts";

const STOP_GRACE_MS = 2_000;

/** A real model acts on the same plain sentences as the offline one. */
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

/** One configuration file; `tools` is what the steps are about. */
function configText(dir: string, token: string, tools: object): string {
  const config = {
    gateway: { port: 0, auth: { token } },
    store: { dir: join(dir, "state"), postgresUrl: null },
    agents: {
      defaults: { workspace: join(dir, "workspace") },
      list: AGENTS.map((id) => ({ id, instructions: INSTRUCTIONS })),
    },
    tools,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

export interface Place {
  readonly link: Link;
  readonly gateway: RunningGateway;
}

export class Setting {
  readonly #cli: Cli;
  readonly #dir: string;
  readonly #places: Place[] = [];
  #left = false;

  private constructor(cli: Cli, dir: string) {
    this.#cli = cli;
    this.#dir = dir;
  }

  static async make(cli: Cli): Promise<Setting> {
    return new Setting(cli, await mkdtemp(join(tmpdir(), "parley-demo-")));
  }

  /** Starts a gateway with these `tools` settings and connects to it. */
  async open(name: string, tools: object): Promise<Reply<Place>> {
    const { world, openGateway } = this.#cli.parts;
    const configPath = join(this.#dir, `${name}.json5`);
    const token = world.ids.uuid();
    await writeFile(configPath, configText(join(this.#dir, name), token, tools), { mode: 0o600 });
    const opened = await openGateway({ configPath, port: 0, quiet: true });
    if (!opened.ok) return opened;
    const gateway = opened.value;
    if (this.#left) {
      await gateway.close(0);
      return { ok: false, code: "interrupted", error: "The demo was stopped." };
    }
    const linked = await openLink({ url: gateway.url, token }, { reconnect: false, world });
    if (!linked.ok) {
      await gateway.close(0);
      return linked;
    }
    const place = { link: linked.value, gateway };
    this.#places.push(place);
    return { ok: true, value: place };
  }

  /** The demo was stopped: nothing more is to be played. */
  get left(): boolean {
    return this.#left;
  }

  async leave(): Promise<void> {
    this.#left = true;
    for (const { link, gateway } of this.#places.splice(0)) {
      link.client.close();
      await gateway.close(STOP_GRACE_MS);
    }
    await rm(this.#dir, { recursive: true, force: true });
  }
}
