// Signs the reader in at an MCP server, in this tab: it leaves the page for the server's sign-in, which comes
// back to the page with an answer in the address.

import { ask } from "../../gateway.ts";
import { complain, say } from "../../parts/notices.tsx";
import { go } from "../../route.ts";

/** Leaves the page for the sign-in at this server. Rejects if there is none. */
export async function beginSignIn(name: string): Promise<void> {
  const { origin, pathname } = window.location;
  const { url } = await ask("servers.login", { name, redirectUrl: origin + pathname });
  window.location.assign(url);
}

export function endSignIn(): void {
  const { pathname, search } = window.location;
  window.history.replaceState(null, "", pathname);
  go({ view: "operations", tab: "servers" }, true);
  ask("servers.login.finish", { query: search }).then(
    ({ name, tools }) => say(`Signed in at ${name}, which has ${tools.length} tools.`),
    complain,
  );
}
