// Implements `parley replay`: runs a recorded chain again, without models, and names the first difference.

import { readRecord } from "../../../contract/chain-record.ts";
import { fail, ok } from "../../../core/shapes/errors.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { fetchRecord, readRecordFile, saveRecord } from "../../chain-record.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { count, fromDifference } from "../../layout.ts";
import type { ReplayReport } from "../../parts.ts";

interface ReplayOptions {
  readonly file?: string;
  readonly save?: string;
}

/** Characters of a difference that are shown. */
const SHOWN_CHARS = 600;
const YEAR_MINUTES = 366 * 24 * 60;

async function report(cli: Cli, record: ChainRecord): Promise<number> {
  const replayed = await cli.parts.replay(record);
  if (!replayed.ok) return cli.fail(replayed);
  const { difference } = replayed.value;
  show(cli, replayed.value);
  cli.document({ ok: difference === undefined, ...replayed.value });
  return difference === undefined ? EXIT.done : EXIT.failed;
}

function show(cli: Cli, { runs, entries, difference }: ReplayReport): void {
  const size = `${count(runs, "run")}, ${count(entries, "entry", "entries")}`;
  if (difference === undefined) {
    cli.line(`No difference: ${size}`);
    return;
  }
  const { runId, sessionKey, step } = difference;
  const [expected, got] = fromDifference(difference.expected, difference.got, SHOWN_CHARS);
  cli.line(safeLine(`First difference (${size}): ${step} of run ${runId}, session ${sessionKey}`));
  cli.line(safeLine(`  record  ${expected}`));
  cli.line(safeLine(`  replay  ${got}`));
}

/** Returns the id of the chain with the newest activity. */
async function newestChain(link: Link): Promise<Reply<string>> {
  const params = { includeSingle: true, limit: 1, activeMinutes: YEAR_MINUTES };
  const page = await link.request("chains.list", params);
  if (!page.ok) return page;
  const [chain] = page.value.chains;
  return chain === undefined
    ? fail("chain_not_found", "No chain has run in the last year.")
    : ok(chain.chainId);
}

export async function replayChain(
  cli: Cli,
  args: readonly string[],
  options: ReplayOptions,
): Promise<number> {
  const [named] = args;
  const { file } = options;
  if (named !== undefined && file !== undefined) {
    return cli.fail({ code: "usage", error: "name a chain, or a record with --file, not both" }, EXIT.usage);
  }
  if (file !== undefined) {
    const record = await readRecordFile(cli, file);
    return record.ok ? report(cli, record.value) : cli.fail(record);
  }
  return withLink(cli, async (link) => {
    const chainId = named === undefined ? await newestChain(link) : ok(named);
    if (!chainId.ok) return cli.fail(chainId);
    const text = await fetchRecord(link, chainId.value);
    if (!text.ok) return cli.fail(text);
    if (named === undefined) cli.note(safeLine(`Chain ${chainId.value}`));
    const record = readRecord(text.value);
    if (!record.ok) return cli.fail(record);
    if (options.save === undefined) return report(cli, record.value);
    const saved = await saveRecord(cli, options.save, text.value);
    if (!saved.ok) return cli.fail(saved);
    cli.note(safeLine(`Wrote the record to ${options.save}.`));
    return report(cli, record.value);
  });
}
