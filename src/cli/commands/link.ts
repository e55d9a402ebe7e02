// Owns `parley link`: the link that opens the page and signs in, for whoever may read the token.

import { safeLine } from "../../core/safe-text.ts";
import { findAddress, pageLink } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";

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
  const link = pageLink(url.replace(/^ws/, "http"), token);
  cli.line(safeLine(link));
  cli.document({ ok: true, link });
  return EXIT.done;
}
