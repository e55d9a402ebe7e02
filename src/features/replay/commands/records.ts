// Gets records of chains from the gateway and from files, and saves them.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Cli } from "../../../cli/cli.ts";
import { readText, writeText } from "../../../cli/files.ts";
import type { Link, Reply } from "../../../cli/gateway-link.ts";
import { readRecord } from "../../../contract/chain-record.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import { pause } from "../../../world/pause.ts";

/** Maximum number of pages. It ends the loop if a gateway never returns a last page. */
const PAGES_MAX = 10_000;
const YEAR_MINUTES = 366 * 24 * 60;
/** Maximum wait for the end of a chain, and the time between two requests. */
const END_MAX_MS = 60_000;
const POLL_MS = 250;

/** Returns the ids of the chains with the newest activity, the newest first. */
export async function newestChains(link: Link, limit: number): Promise<Reply<string[]>> {
  const page = await link.request("chains.list", { includeSingle: true, limit, activeMinutes: YEAR_MINUTES });
  if (!page.ok) return page;
  const ids = page.value.chains.map(({ chainId }) => chainId);
  return ids.length === 0 ? fail("chain_not_found", "No chain has run in the last year.") : ok(ids);
}

async function recordNow(link: Link, chainId: string): Promise<Reply<string>> {
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

/** Returns the text of a chain's record. Waits for the end of a chain that still runs, for a limited time. */
export async function fetchRecord(cli: Cli, link: Link, chainId: string): Promise<Reply<string>> {
  const { clock } = cli.parts.world;
  const endAt = clock.monotonic() + END_MAX_MS;
  let record = await recordNow(link, chainId);
  const isBusy = (): boolean => !record.ok && record.code === "session_busy";
  if (isBusy()) cli.note("Waiting for the end of the chain.");
  while (isBusy() && clock.monotonic() < endAt) {
    await pause(clock, POLL_MS, undefined, "alive");
    record = await recordNow(link, chainId);
  }
  return record;
}

/** Returns the record of a chain, as `fetchRecord` does. */
export async function fetchedRecord(cli: Cli, link: Link, chainId: string): Promise<Reply<ChainRecord>> {
  const text = await fetchRecord(cli, link, chainId);
  return text.ok ? readRecord(text.value) : text;
}

/** Reads a record. `file` is relative to the folder. */
export async function readRecordFile(folder: string, file: string): Promise<Result<ChainRecord>> {
  const text = await readText(folder, file);
  return text.ok ? readRecord(text.value) : text;
}

/** Returns the record in a file, or undefined if the name is probably the id of a chain. */
export async function recordInFile(cli: Cli, name: string): Promise<Result<ChainRecord> | undefined> {
  const isFile = /[./\\]/.test(name) || existsSync(resolve(cli.parts.folder, name));
  return isFile ? readRecordFile(cli.parts.folder, name) : undefined;
}

export const saveRecord = (cli: Cli, file: string, text: string): Promise<Result<void>> =>
  writeText(cli.parts.folder, file, text, "exists already. Name a new file, or remove that one first.");
