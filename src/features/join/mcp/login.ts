// Implements `parley mcp login`: a person signs in at an MCP server in a browser, which comes back to this
// computer. The gateway keeps the tokens.

import { createServer, type Server } from "node:http";
import { type Cli, EXIT, stopOnSignals } from "../../../cli/cli.ts";
import type { Link } from "../../../cli/gateway-link.ts";
import { count } from "../../../cli/layout.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { timeLimit } from "../../../world/pause.ts";

const PERSON_MAX_MS = 600_000;
const PATH = "/callback";

/** Opens a port to which only browsers of this computer come. */
async function listen(port: number): Promise<Result<{ server: Server; redirectUrl: string }>> {
  const server = createServer();
  const opened = new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  try {
    await opened;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fail("invalid_argument", `port ${port} of this computer can't be used (${code})`);
  }
  const address = server.address();
  const used = typeof address === "object" && address !== null ? address.port : port;
  return ok({ server, redirectUrl: `http://127.0.0.1:${used}${PATH}` });
}

/** Returns the query with which the browser comes back. */
function comesBack(server: Server, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
    server.on("request", (request, response) => {
      const { pathname, search, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
      const isAnswer = pathname === PATH && searchParams.has("state");
      response.writeHead(isAnswer ? 200 : 404, { "content-type": "text/plain", connection: "close" });
      response.end(isAnswer ? "Back in the terminal you see the outcome. You can close this window.\n" : "");
      if (isAnswer) resolve(search);
    });
  });
}

export async function login(
  cli: Cli,
  link: Link,
  { server: name, port = 0 }: { readonly server: string; readonly port?: number },
): Promise<number> {
  const listening = await listen(port);
  if (!listening.ok) return cli.fail(listening);
  const { server, redirectUrl } = listening.value;
  using stop = stopOnSignals(cli.parts);
  using limit = timeLimit(cli.parts.world.clock, PERSON_MAX_MS, { signal: stop.signal });
  try {
    const begun = await link.request("servers.login", { name, redirectUrl });
    if (!begun.ok) return cli.fail(begun);
    const back = comesBack(server, limit.signal);
    cli.note("Open this address in a browser of this computer:");
    cli.note(begun.value.url);
    const query = await back;
    if (query === undefined) return cli.fail(fail("cancelled", "the browser did not come back"));
    const finished = await link.request("servers.login.finish", { query });
    if (!finished.ok) return cli.fail(finished);
    const { tools } = finished.value;
    cli.say(`signed in at ${name}: ${count(tools.length, "tool")}`);
    cli.document(finished.value);
    return EXIT.done;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
