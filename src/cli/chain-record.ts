// Fetches the record of a chain from the gateway.

import { fail, ok } from "../core/shapes/errors.ts";
import type { Link, Reply } from "./gateway-link.ts";

/** Maximum number of pages. It ends the loop if a gateway never returns a last page. */
const PAGES_MAX = 10_000;

/** Returns the text of a chain's record. */
export async function fetchRecord(link: Link, chainId: string): Promise<Reply<string>> {
  let text = "";
  let checksum: string | undefined;
  let offset: number | undefined = 0;
  for (let pages = 0; pages < PAGES_MAX && offset !== undefined; pages += 1) {
    const page: Reply<{ checksum: string; text: string; nextOffset?: number }> = await link.request(
      "chains.record",
      { chainId, offset },
    );
    if (!page.ok) return page;
    checksum ??= page.value.checksum;
    if (page.value.checksum !== checksum) {
      return fail("session_busy", "the chain changed while its record was read; try again");
    }
    text += page.value.text;
    offset = page.value.nextOffset;
  }
  return ok(text);
}
