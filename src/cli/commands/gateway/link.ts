// Implements `parley link`: prints the link that opens the page and signs in. The program at that address can
// read the token from the link. So the link is not printed if another program answers there.

import { safeLine } from "../../../core/text/safe-text.ts";
import { findAddress, httpBase, loadedSettings, pageLink, probe } from "../../address.ts";
import { type Cli, EXIT } from "../../cli.ts";
import type { Reply } from "../../gateway-link.ts";

const NOT_OURS = "The link is not printed, because that program could read the token in it.";

/** Returns whether a gateway uses the configured store. Returns undefined if that is unknown. */
async function holdsStore(cli: Cli): Promise<boolean | undefined> {
  if (cli.options.url !== undefined) return undefined;
  const settings = await loadedSettings(cli);
  if (!settings.ok || settings.value.store.postgresUrl !== undefined) return undefined;
  return (await cli.parts.inspectStore(settings.value.store.dir)).state === "in_use";
}

/**
 * Returns whether the gateway runs. Fails if another program, or a gateway with another store, answers at its
 * address.
 */
async function checkAddress(cli: Cli, base: string): Promise<Reply<"runs" | "stopped">> {
  const found = await probe(base, cli.parts.world.clock);
  if (found === "nobody") return { ok: true, value: "stopped" };
  if (found === "gateway" && (await holdsStore(cli)) !== false) return { ok: true, value: "runs" };
  const [what, hint] =
    found === "gateway"
      ? [`The gateway at ${base} uses another store.`, "Name its configuration with --config"]
      : [`Another program, not a gateway, answers at ${base}.`, "Stop that program"];
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
      error: "There is no token yet: the gateway generates one at its first start.",
      hint: "Start the gateway: npx parley-gateway",
    });
  }
  const base = httpBase(url);
  const checked = await checkAddress(cli, base);
  if (!checked.ok) return cli.fail(checked);
  if (checked.value === "stopped") cli.note("The gateway is not running. Start it: npx parley-gateway");
  const link = pageLink(base, token);
  cli.line(safeLine(link));
  cli.document({ ok: true, link });
  return EXIT.done;
}
