// Sets up the demo of the command line: starts its gateways and connects to each.

import type { Cli } from "../cli.ts";
import { type Link, openLink, type Reply } from "../gateway-link.ts";
import type { RunningGateway } from "../parts.ts";
import { DemoGateways } from "./gateways.ts";

const STOP_GRACE_MS = 2_000;

export interface DemoConnection {
  readonly link: Link;
  readonly gateway: RunningGateway;
}

export class DemoSetup {
  readonly #cli: Cli;
  readonly #gateways: DemoGateways;
  readonly #links: Link[] = [];

  private constructor(cli: Cli, gateways: DemoGateways) {
    this.#cli = cli;
    this.#gateways = gateways;
  }

  static async make(cli: Cli): Promise<DemoSetup> {
    return new DemoSetup(cli, await DemoGateways.make(cli.parts));
  }

  /** Starts a gateway with the given `tools` settings and connects to it. */
  async open(name: string, tools: object): Promise<Reply<DemoConnection>> {
    const opened = await this.#gateways.open(name, { tools });
    if (!opened.ok) return opened;
    const { world } = this.#cli.parts;
    const gateway = opened.value;
    const linked = await openLink({ url: gateway.url, token: gateway.token }, { reconnect: false, world });
    if (!linked.ok) return linked;
    this.#links.push(linked.value);
    return { ok: true, value: { link: linked.value, gateway } };
  }

  /** Returns whether the demo was stopped. */
  get left(): boolean {
    return this.#gateways.left;
  }

  async leave(): Promise<void> {
    for (const link of this.#links.splice(0)) link.client.close();
    await this.#gateways.leave(STOP_GRACE_MS);
  }
}
