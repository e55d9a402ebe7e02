// Implements `parley mcp`: serves the session tools to an MCP client over standard input and output.
// Standard output carries messages only; even a failed start is reported on standard error.

import { type Cli, EXIT } from "../cli.ts";
import { Bridge } from "../mcp/bridge.ts";
import { UpstreamFinder } from "../mcp/upstream.ts";

interface McpOptions {
  readonly session?: string;
  readonly handle?: string;
  readonly agent?: string;
}

/** Returns the query that names the session. Not a header: keys may hold characters that a header cannot. */
function queryOf({ session, handle, agent }: McpOptions): string {
  const query = new URLSearchParams();
  if (session !== undefined) query.set("session", session);
  if (handle !== undefined) query.set("handle", handle);
  if (agent !== undefined) query.set("agent", agent);
  return query.size === 0 ? "" : `?${query}`;
}

export async function runMcp(cli: Cli, _args: readonly string[], options: McpOptions): Promise<number> {
  const { parts } = cli;
  const stop = new AbortController();
  const releases = (["SIGINT", "SIGTERM"] as const).map((name) => parts.onSignal(name, () => stop.abort()));
  const upstream = new UpstreamFinder(cli);
  try {
    const found = await upstream.open();
    if (!found.ok) {
      cli.note([found.error, found.hint ?? ""].join(" ").trim());
      const isAway = cli.options.url !== undefined && found.code === "store_unavailable";
      return isAway ? EXIT.unreachable : EXIT.failed;
    }
    const bridge = new Bridge({
      world: parts.world,
      input: parts.stdin,
      output: parts.stdout,
      query: queryOf(options),
      upstream: found.value,
      again: () => upstream.again(),
      note: (text) => cli.note(text),
    });
    await bridge.run(stop.signal);
    return EXIT.done;
  } finally {
    for (const release of releases) release();
    await upstream.close();
  }
}
