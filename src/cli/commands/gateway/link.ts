// Implements `parley link`: prints the link that opens the page and signs in. The program at that address can
// read the token from the link. So the link is not printed if another program answers there.

import { findAddress, httpBase, pageLink, probe } from "../../address.ts";
import { type Cli, EXIT } from "../../cli.ts";

export async function printLink(cli: Cli): Promise<number> {
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const { url, token } = address.value;
  const base = httpBase(url);
  if ((await probe(base, cli.parts.world.clock)) === "stranger") {
    return cli.fail({
      code: "foreign_gateway",
      error: `Another program, not a gateway, answers at ${base}. It could read the token in the link.`,
      hint: "Correct --url.",
    });
  }
  const link = pageLink(base, token);
  cli.say(link);
  cli.document({ ok: true, link });
  return EXIT.done;
}
