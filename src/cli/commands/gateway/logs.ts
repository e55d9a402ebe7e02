// Implements `parley logs`: prints the newest lines of the gateway's log, and follows it.
// While it follows, it connects again after a lost connection, also to a restarted gateway.

import type { LogLine } from "../../../contract/methods/operations.ts";
import { optional } from "../../../core/optional.ts";
import { pause } from "../../../world/pause.ts";
import { type Address, findAddress } from "../../address.ts";
import { type Cli, EXIT, isGone, stopOnSignals } from "../../cli.ts";
import { openLink } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import { logLine } from "../../log-lines.ts";

interface LogOptions {
  readonly follow?: boolean;
  readonly level?: LogLine["level"];
  readonly part?: readonly string[];
  readonly run?: string;
  readonly limit: number;
}

/** Maximum number of lines of one request. */
const PAGE_LINES = 500;
const POLL_MS = 500;
const AGAIN_MS = 1_000;
/** Numbers of the levels in a written log line. */
const NUMBERS = { debug: 20, info: 30, warn: 40, error: 50 } as const;

class LogReader {
  readonly #cli: Cli;
  readonly #options: LogOptions;
  readonly #address: Address;
  #cursor: string | undefined;

  constructor(cli: Cli, address: Address, options: LogOptions) {
    this.#cli = cli;
    this.#address = address;
    this.#options = options;
  }

  #fits({ part, runId }: LogLine): boolean {
    const { part: parts, run } = this.#options;
    return (parts === undefined || parts.includes(String(part))) && (run === undefined || runId === run);
  }

  #print({ seq, level, cut, ...line }: LogLine): void {
    const colours = this.#cli.parts.isTTY && !this.#cli.parts.env.NO_COLOR;
    this.#cli.write(logLine(JSON.stringify({ level: NUMBERS[level], ...line }), colours));
  }

  /**
   * Connects and prints new lines, again and again if it follows. Returns the exit code, or undefined if the
   * gateway is gone.
   */
  async read(stop: AbortSignal, connected: () => void): Promise<number | undefined> {
    const { parts, options } = this.#cli;
    const opened = await openLink(this.#address, { reconnect: false, world: parts.world });
    if (!opened.ok) return this.#failed(opened);
    const link = opened.value;
    connected();
    // Ends a request that the gateway does not answer.
    stop.addEventListener("abort", () => link.client.close(), { once: true });
    const { follow = false, level, run, limit } = this.#options;
    try {
      while (!stop.aborted) {
        const wanted = { limit: PAGE_LINES, ...optional({ level, search: run, cursor: this.#cursor }) };
        const page = await link.request("logs.tail", wanted);
        if (!page.ok) return this.#failed(page);
        const isFirst = this.#cursor === undefined;
        const lines = page.value.lines.filter((line) => this.#fits(line)).slice(isFirst ? -limit : 0);
        if (page.value.dropped > 0) this.#cli.note(`${count(page.value.dropped, "line")} could not be read.`);
        for (const line of lines) this.#print(line);
        if (!follow) {
          if (options.json) this.#cli.document({ ...page.value, lines });
          return EXIT.done;
        }
        this.#cursor = page.value.cursor;
        if (!page.value.more) await pause(parts.world.clock, POLL_MS, stop, "alive");
      }
      return EXIT.done;
    } finally {
      link.client.close();
    }
  }

  /** Returns undefined for a lost connection that is worth another attempt. */
  #failed(trouble: Parameters<Cli["fail"]>[0]): number | undefined {
    const isFollowing = this.#cursor !== undefined;
    return isFollowing && isGone(trouble) ? undefined : this.#cli.fail(trouble);
  }
}

export async function showLogs(cli: Cli, _args: readonly string[], options: LogOptions): Promise<number> {
  if (options.follow === true && cli.options.json)
    return cli.fail(
      { code: "usage", error: "--json prints one document, so it needs no --follow" },
      EXIT.usage,
    );
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const reader = new LogReader(cli, address.value, options);
  const stop = stopOnSignals(cli.parts);
  let isLost = false;
  try {
    while (!stop.signal.aborted) {
      const ended = await reader.read(stop.signal, () => {
        if (isLost) cli.note("Reconnected.");
        isLost = false;
      });
      if (ended !== undefined || stop.signal.aborted) return ended ?? EXIT.done;
      if (!isLost) cli.note("The connection to the gateway was lost. Reconnecting.");
      isLost = true;
      await pause(cli.parts.world.clock, AGAIN_MS, stop.signal, "alive");
    }
    return EXIT.done;
  } finally {
    stop.release();
  }
}
