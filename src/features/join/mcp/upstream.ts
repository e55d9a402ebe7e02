// Finds the gateway for `parley mcp`: a running one, or a new one in this process.
// Only one process can own the store, so a running gateway is always used. If none is running, this process
// runs one at the configured address, and the next `parley mcp` finds it there.
// If a gateway was running at the start, this process never starts one later, because that gateway may be
// restarting and must find its store unused.

import { findAddress, httpBase, probe } from "../../../cli/address.ts";
import type { Cli } from "../../../cli/cli.ts";
import type { RunningGateway } from "../../../cli/parts.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { pause } from "../../../world/pause.ts";

/** Number of attempts to find a running gateway, because another process may just be starting one. */
const LOOKS_MAX = 10;
const LOOK_EVERY_MS = 300;
/**
 * If this process runs the gateway: the time for running work to finish. The rest is stored for the next
 * start.
 */
const STOP_GRACE_MS = 1_000;

export interface Upstream {
  /** `http://host:port/mcp` */
  readonly url: string;
  readonly token: string;
}

export class UpstreamFinder {
  readonly #cli: Cli;
  readonly #token: () => string | undefined;
  #own: RunningGateway | undefined;

  /** `token` returns the token to use instead of the configured one, if any, at each request. */
  constructor(cli: Cli, token: () => string | undefined) {
    this.#cli = cli;
    this.#token = token;
  }

  /** Returns the running gateway, or starts one in this process. */
  async open(): Promise<Result<Upstream>> {
    const running = await this.#running();
    if (running.ok || running.code !== "store_unavailable" || this.#cli.options.url !== undefined)
      return running;
    const opened = await this.#start();
    // The start may fail because another process is just starting a gateway. That gateway will answer soon.
    return opened.ok ? opened : this.again(opened);
  }

  /**
   * Returns the running gateway. Retries, because the gateway may be starting. `otherwise`: the result to
   * return if no gateway answers.
   */
  async again(otherwise?: Result<Upstream>): Promise<Result<Upstream>> {
    const { clock } = this.#cli.parts.world;
    let found = await this.#running();
    for (let look = 1; !found.ok && look < LOOKS_MAX; look++) {
      await pause(clock, LOOK_EVERY_MS, undefined, "alive");
      found = await this.#running();
    }
    return found.ok ? found : (otherwise ?? found);
  }

  /** Stops the gateway of this process, if it runs one. */
  async close(): Promise<void> {
    await this.#own?.close(STOP_GRACE_MS);
  }

  async #running(): Promise<Result<Upstream>> {
    const address = await findAddress(this.#cli);
    if (!address.ok && address.code === "UNREACHABLE")
      return fail("store_unavailable", address.error, { hint: address.hint });
    if (!address.ok) return address;
    const { url, token } = address.value;
    const base = httpBase(url);
    if ((await probe(base, this.#cli.parts.world.clock)) === "gateway")
      return ok(this.#upstreamAt(`${base}/mcp`, token));
    return fail("store_unavailable", `no gateway answers at ${safeLine(base)}`, {
      hint: "Start it: npx parley-gateway gateway",
    });
  }

  async #start(): Promise<Result<Upstream>> {
    const { config } = this.#cli.options;
    const opened = await this.#cli.parts.openGateway({
      quiet: true,
      ...optional({ configPath: config }),
    });
    if (!opened.ok) return opened;
    this.#own = opened.value;
    const { httpUrl, token, warnings } = opened.value;
    for (const warning of warnings) this.#cli.note(`warning: ${safeLine(warning)}`);
    this.#cli.note(`No gateway was running, so this process runs one at ${httpUrl}.`);
    return ok(this.#upstreamAt(`${httpUrl}/mcp`, token));
  }

  #upstreamAt(url: string, token: string): Upstream {
    const given = this.#token;
    return {
      url,
      get token() {
        return given() ?? token;
      },
    };
  }
}
