// Implements `parley mcp`: serves the session tools to an MCP client over standard input and output.
// Standard output carries only protocol messages. A failed start is reported on standard error.

import { join } from "node:path";
import { socketUrl } from "../../../cli/address.ts";
import { type Cli, EXIT, stopOnSignals, type Trouble } from "../../../cli/cli.ts";
import { openLink, type Reply } from "../../../cli/gateway-link.ts";
import { findOrName } from "../../../cli/session-name.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { joinByPlugin, mcpLine } from "../plugin.ts";
import { PROGRAM, type ProgramId } from "../programs.ts";
import { joinedFolder, readRecord, WINDOWS_MAX } from "../record.ts";
import { renewTokens, windowToken } from "../tokens.ts";
import { wakeWhenIdle } from "../wake.ts";
import { ancestorsOf, closeWindow, openWindow, programAbove, windowOf } from "../windows.ts";
import { Bridge } from "./bridge.ts";
import { type Upstream, UpstreamFinder } from "./upstream.ts";

interface McpOptions {
  readonly session?: string;
  readonly handle?: string;
  readonly agent?: string;
  readonly joined?: string;
  readonly plugin?: ProgramId;
}

/** One window of a joined program, with the token for its session. */
interface JoinedWindow {
  token(): string;
  close(): void;
}

/**
 * Opens a window of a joined program: reserves a free number, so that no two open windows have the same
 * session.
 */
async function openJoined(
  cli: Cli,
  { joined, plugin }: McpOptions,
  stop: AbortSignal,
): Promise<Result<JoinedWindow>> {
  const { parts } = cli;
  const named = plugin === undefined ? ok(joined ?? "") : await joinByPlugin(cli, plugin);
  if (!named.ok) return named;
  const handle = named.value;
  const known = readRecord(parts.home, handle);
  if (known === undefined) {
    const hint = "Remove this MCP server, or join again: npx parley-gateway join";
    return fail("session_not_found", `no program has joined as ${handle}`, { hint });
  }
  const record = await renewTokens(cli, known);
  const folder = join(joinedFolder(parts.home), handle);
  const { platform } = parts.machine;
  const own = windowOf(folder, ancestorsOf(process.ppid, platform));
  const tokenOf = (number: number) => () => windowToken(cli, record, number);
  if (own?.continued === true) return ok({ token: tokenOf(own.number), close: () => {} });
  const program = plugin === undefined ? process.ppid : programAbove(mcpLine(plugin), platform);
  const window = { bridge: process.pid, program };
  const number = await openWindow(folder, window, parts.world.clock);
  if (number === undefined)
    return fail("queue_full", `${handle} has ${WINDOWS_MAX} open windows already`, {
      hint: "Close one window.",
    });
  if (PROGRAM[record.program].door !== "own") {
    wakeWhenIdle(cli, record, number, stop).catch((error: unknown) =>
      parts.world.log.debug({ err: error }, "a window could not be woken"),
    );
  }
  return ok({ token: tokenOf(number), close: () => closeWindow(folder, number) });
}

/** Returns the key of the session that the user named, or undefined if the user named none. */
async function sessionNamed(
  cli: Cli,
  name: string | undefined,
  { url, token }: Upstream,
): Promise<Reply<string | undefined>> {
  if (name === undefined) return ok(undefined);
  const socket = socketUrl(url.replace(/\/mcp$/, ""));
  if (!socket.ok) return socket;
  const options = { reconnect: false, world: cli.parts.world };
  const link = await openLink({ url: socket.value, token }, options);
  if (!link.ok) return link;
  using open = link.value;
  const named = await findOrName(cli, open, name);
  return named.ok ? ok(named.value.key) : named;
}

export async function runMcp(cli: Cli, options: McpOptions): Promise<number> {
  const { parts } = cli;
  const refuse = ({ error, hint = "" }: Trouble, exit: number = EXIT.failed): number => {
    cli.note(`${error} ${hint}`.trim());
    return exit;
  };
  const over = new AbortController();
  let window: JoinedWindow | undefined;
  const upstream = new UpstreamFinder(cli, () => window?.token());
  try {
    using stop = stopOnSignals(parts);
    const found = await upstream.open();
    if (!found.ok) {
      const isAway = cli.options.url !== undefined && found.code === "store_unavailable";
      return refuse(found, isAway ? EXIT.unreachable : EXIT.failed);
    }
    // Only now, because the tokens of windows are made from the gateway's, which its first start generates.
    if (options.joined !== undefined || options.plugin !== undefined) {
      const opened = await openJoined(cli, options, over.signal);
      if (!opened.ok) return refuse(opened);
      window = opened.value;
    }
    const session = await sessionNamed(cli, options.session, found.value);
    if (!session.ok) return refuse(session);
    // The session is not named in a header, because keys may contain characters that are invalid there.
    const { handle, agent } = options;
    const query = new URLSearchParams(optional({ session: session.value, handle, agent }));
    const bridge = new Bridge({
      world: parts.world,
      input: parts.stdin,
      output: parts.stdout,
      query: query.size === 0 ? "" : `?${query}`,
      upstream: found.value,
      again: () => upstream.again(),
      note: (text) => cli.note(text),
    });
    await bridge.run(stop.signal);
    return EXIT.done;
  } finally {
    over.abort();
    window?.close();
    await upstream.close();
  }
}
