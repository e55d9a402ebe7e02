// Owns `parley link`: the link that opens the page and signs in, for whoever may read the token.
// LI1: the page behind the link reads the token, so it is not printed while another program has the address.

import { safeLine } from "../../core/safe-text.ts";
import { findAddress, pageLink, probe } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";
import type { Reply } from "../gateway-link.ts";

const NOT_OURS = "The link is not printed: a page there could read the token.";

/** Whether the gateway of this configuration holds its store; undefined: nobody here can tell. */
async function holdsStore({ parts, options }: Cli): Promise<boolean | undefined> {
  if (options.url !== undefined) return undefined;
  const { loadSettings } = await import("../../config.ts");
  const named = options.config === undefined ? {} : { configPath: options.config };
  const loaded = loadSettings({ env: parts.env, home: parts.home, ...named });
  if (!loaded.ok || loaded.value.settings.store.postgresUrl !== undefined) return undefined;
  return (await parts.inspectStore(loaded.value.settings.store.dir)).state === "in_use";
}

/** Says whether the gateway runs. A failure: another program has the address. */
async function checkAddress(cli: Cli, base: string): Promise<Reply<"runs" | "stopped">> {
  const found = await probe(base, cli.parts.world.clock);
  if (found === "nobody") return { ok: true, value: "stopped" };
  if (found === "gateway" && (await holdsStore(cli)) !== false) return { ok: true, value: "runs" };
  const [what, hint] =
    found === "gateway"
      ? [
          `The gateway at ${base} is another one: none runs on this store.`,
          "Name its configuration with --config",
        ]
      : [`A program that is no gateway answers at ${base}.`, "Stop that program"];
  return {
    ok: false,
    code: "foreign_gateway",
    error: `${what} ${NOT_OURS}`,
    hint: `${hint}, or choose another port with gateway.port.`,
  };
}

export async function printLink(cli: Cli): Promise<number> {
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const { url, token } = address.value;
  if (token === "") {
    return cli.fail({
      code: "unauthorized",
      error: "There is no token yet: the gateway makes one at its first start.",
      hint: "Start it with: npx parley",
    });
  }
  const base = url.replace(/^ws/, "http");
  const checked = await checkAddress(cli, base);
  if (!checked.ok) return cli.fail(checked);
  if (checked.value === "stopped") cli.note("The gateway does not run; start it with: npx parley");
  const link = pageLink(base, token);
  cli.line(safeLine(link));
  cli.document({ ok: true, link });
  return EXIT.done;
}
