// Implements `parley logs`: prints the newest lines of the gateway's log, and follows it.
// While it follows, it connects again after a lost connection, also to a restarted gateway.

import type { LogLine } from "../../../contract/methods/operations.ts";
import { pause } from "../../../world/pause.ts";
import { findAddress } from "../../address.ts";
import { type Cli, EXIT, isGone, stopOnSignals, type Trouble } from "../../cli.ts";
import { type Link, openLink } from "../../gateway-link.ts";
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

export async function showLogs(cli: Cli, options: LogOptions): Promise<number> {
  const { follow = false, level, part: parts, run, limit } = options;
  const { clock } = cli.parts.world;
  if (follow && cli.options.json) return cli.misuse("--json prints one document, so it needs no --follow");
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  using stop = stopOnSignals(cli.parts);
  const colours = cli.parts.isTTY && !cli.parts.env.NO_COLOR;
  let isLost = false;
  let cursor: string | undefined;
  const fits = ({ part, runId }: LogLine): boolean =>
    (parts === undefined || parts.includes(String(part))) && (run === undefined || runId === run);
  /** Returns undefined for a lost connection that is worth another attempt. */
  const reportTrouble = (trouble: Trouble): number | undefined =>
    cursor !== undefined && isGone(trouble) ? undefined : cli.fail(trouble);
  /** Prints new lines, again and again if it follows. Returns undefined if the gateway is gone. */
  const read = async (link: Link): Promise<number | undefined> => {
    while (!stop.signal.aborted) {
      const page = await link.request("logs.tail", { limit: PAGE_LINES, level, search: run, cursor });
      if (!page.ok) return reportTrouble(page);
      const lines = page.value.lines.filter(fits).slice(cursor === undefined ? -limit : 0);
      if (page.value.dropped > 0) cli.note(`${count(page.value.dropped, "line")} could not be read.`);
      for (const { seq, level: name, cut, ...line } of lines)
        cli.write(logLine(JSON.stringify({ level: NUMBERS[name], ...line }), colours));
      if (!follow) cli.document({ ...page.value, lines });
      if (!follow) return EXIT.done;
      cursor = page.value.cursor;
      if (!page.value.more) await pause(clock, POLL_MS, stop.signal, "alive");
    }
    return EXIT.done;
  };
  while (!stop.signal.aborted) {
    const opened = await openLink(address.value, { reconnect: false, world: cli.parts.world });
    if (opened.ok && isLost) cli.note("Reconnected.");
    if (opened.ok) isLost = false;
    const end = (): void => {
      if (opened.ok) opened.value.client.close();
    };
    // Ends a request that the gateway does not answer.
    stop.signal.addEventListener("abort", end, { once: true });
    const ended = opened.ok ? await read(opened.value).finally(end) : reportTrouble(opened);
    if (ended !== undefined || stop.signal.aborted) return ended ?? EXIT.done;
    if (!isLost) cli.note("The connection to the gateway was lost. Reconnecting.");
    isLost = true;
    await pause(clock, AGAIN_MS, stop.signal, "alive");
  }
  return EXIT.done;
}
