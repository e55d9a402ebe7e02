// Owns what the demo of the command line plays on: gateways on a ground of their own, and a connection to
// each.

import type { Cli } from "../cli.ts";
import { type Link, openLink, type Reply } from "../gateway-link.ts";
import type { RunningGateway } from "../parts.ts";
import { Ground } from "./ground.ts";

const STOP_GRACE_MS = 2_000;

export interface Place {
  readonly link: Link;
  readonly gateway: RunningGateway;
}

export class Setting {
  readonly #cli: Cli;
  readonly #ground: Ground;
  readonly #links: Link[] = [];

  private constructor(cli: Cli, ground: Ground) {
    this.#cli = cli;
    this.#ground = ground;
  }

  static async make(cli: Cli): Promise<Setting> {
    return new Setting(cli, await Ground.make(cli.parts));
  }

  /** Starts a gateway with these `tools` settings and connects to it. */
  async open(name: string, tools: object): Promise<Reply<Place>> {
    const opened = await this.#ground.open(name, { tools });
    if (!opened.ok) return opened;
    const { world } = this.#cli.parts;
    const gateway = opened.value;
    const linked = await openLink({ url: gateway.url, token: gateway.token }, { reconnect: false, world });
    if (!linked.ok) return linked;
    this.#links.push(linked.value);
    return { ok: true, value: { link: linked.value, gateway } };
  }

  /** The demo was stopped: nothing more is to be played. */
  get left(): boolean {
    return this.#ground.left;
  }

  async leave(): Promise<void> {
    for (const link of this.#links.splice(0)) link.client.close();
    await this.#ground.leave(STOP_GRACE_MS);
  }
}
