// Owns the gateway behind `parley mcp`: one that runs, or else one in this process.
// UP1: a running gateway is always used: the store has one owner. Where none runs, this process becomes it,
//      at the configured address, so that the next `parley mcp` finds it there.
// UP2: who was attached never takes over: a gateway that is being restarted must find its store free.

import { fail, ok, type Result } from "../../core/errors.ts";
import { safeLine } from "../../core/safe-text.ts";
import { pause } from "../../world/pause.ts";
import { findAddress, probe } from "../address.ts";
import type { Cli } from "../cli.ts";
import type { RunningGateway } from "../parts.ts";

/** Somebody may be starting a gateway at this very moment: so often, so far apart, it is looked for. */
const LOOKS_MAX = 10;
const LOOK_EVERY_MS = 300;
/** Running work has this long to finish or to be parked, when this process was the gateway. */
const STOP_GRACE_MS = 1_000;

export interface Upstream {
  /** `http://host:port/mcp` */
  readonly url: string;
  readonly token: string;
}

export class UpstreamFinder {
  readonly #cli: Cli;
  #own: RunningGateway | undefined;

  constructor(cli: Cli) {
    this.#cli = cli;
  }

  /** A gateway to talk to: the one that runs, or one in this process. */
  async open(): Promise<Result<Upstream>> {
    const running = await this.#running();
    if (running.ok || running.code !== "store_unavailable" || this.#cli.options.url !== undefined)
      return running;
    const opened = await this.#start();
    // Another one that starts at the same moment holds store and port: it will answer in a moment.
    return opened.ok ? opened : this.again(opened);
  }

  /** The running gateway, which may be just starting. `otherwise`: what is said when it does not come. */
  async again(otherwise?: Result<Upstream>): Promise<Result<Upstream>> {
    const { clock } = this.#cli.parts.world;
    let found = await this.#running();
    for (let look = 1; !found.ok && look < LOOKS_MAX; look++) {
      await pause(clock, LOOK_EVERY_MS, undefined, "alive");
      found = await this.#running();
    }
    return found.ok ? found : (otherwise ?? found);
  }

  /** Ends the gateway of this process, if it is one. */
  async close(): Promise<void> {
    await this.#own?.close(STOP_GRACE_MS);
  }

  async #running(): Promise<Result<Upstream>> {
    const address = await findAddress(this.#cli);
    if (!address.ok) return address;
    const { url, token } = address.value;
    const base = url.replace(/^ws/, "http");
    if ((await probe(base, this.#cli.parts.world.clock)) === "gateway")
      return ok({ url: `${base}/mcp`, token });
    return fail("store_unavailable", `no gateway answers at ${safeLine(base)}`, {
      hint: "Start it with: parley gateway.",
    });
  }

  async #start(): Promise<Result<Upstream>> {
    const { config } = this.#cli.options;
    const opened = await this.#cli.parts.openGateway({
      quiet: true,
      ...(config === undefined ? {} : { configPath: config }),
    });
    if (!opened.ok) return opened;
    this.#own = opened.value;
    const { httpUrl, token, warnings } = opened.value;
    for (const warning of warnings) this.#cli.note(`warning: ${safeLine(warning)}`);
    this.#cli.note(`No gateway was running: this process is one now, at ${httpUrl}.`);
    return ok({ url: `${httpUrl}/mcp`, token });
  }
}
