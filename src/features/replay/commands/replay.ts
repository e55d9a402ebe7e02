// Implements `parley replay`: runs a recorded chain again, and names the first difference. With changes,
// models are called for what differs.

import { type Cli, EXIT } from "../../../cli/cli.ts";
import { withLink } from "../../../cli/gateway-link.ts";
import { count } from "../../../cli/layout.ts";
import { readRecord, recordText } from "../../../contract/chain-record.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok } from "../../../core/shapes/errors.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import { fromDifference } from "../../../core/text/difference.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { diffChains } from "../chain-diff.ts";
import { type Replayed, replayIn } from "../play/play.ts";
import { type ChangeOptions, changesOf, hasChanges } from "./changed.ts";
import { showLabels, showTotals } from "./diff.ts";
import { fetchRecord, newestChains, readRecordFile, saveRecord } from "./records.ts";

interface ReplayOptions extends ChangeOptions {
  readonly chain?: string;
  readonly file?: string;
  readonly save?: string;
  readonly repeat?: number;
  readonly out?: string;
}

/** Characters of a difference that are shown. */
const SHOWN_CHARS = 600;

/** Returns the name of the file for one of several replays: `out-2.json`. */
const fileOf = (name: string, at: number, of: number): string =>
  of === 1 ? name : name.replace(/(\.[^.]*)?$/, (ending) => `-${at}${ending}`);

/** Replays the chain with changes, and shows what they did to it. */
async function vary(cli: Cli, record: ChainRecord, options: ReplayOptions): Promise<number> {
  const { repeat: times = 1, out } = options;
  const changes = await changesOf(cli, options);
  if (!changes.ok) return cli.fail(changes, EXIT.usage);
  const replays: object[] = [];
  for (let at = 1; at <= times; at += 1) {
    const replayed = await replayIn(cli.parts.world)(record, changes.value);
    if (!replayed.ok) return cli.fail(replayed);
    const { varied, difference, labels } = replayed.value;
    if (varied === undefined) return cli.fail(fail("run_failed", "a run of the replay did not end"));
    const { a, b, differences } = diffChains(record, varied.record);
    const { answers, missing } = varied;
    replays.push({
      record: a,
      replay: b,
      differences,
      labels,
      answers,
      missing,
      ...optional({ difference }),
    });
    if (times > 1) cli.line(`Replay ${at} of ${times}`);
    show(cli, replayed.value);
    const calls = Object.entries(missing).map(([tool, calls]) => `${tool} (${calls})`);
    if (calls.length > 0) cli.say(`Calls that are not in the record, and were not run: ${calls.join(", ")}`);
    cli.line(`Answers of models: ${answers}`);
    showTotals(cli, { a, b, differences });
    if (out === undefined) continue;
    const saved = await saveRecord(cli, fileOf(out, at, times), recordText(varied.record).text);
    if (!saved.ok) return cli.fail(saved);
    cli.note(safeLine(`Wrote the record of the replay to ${fileOf(out, at, times)}.`));
  }
  cli.document({ ok: true, replays });
  return EXIT.done;
}

async function report(cli: Cli, record: ChainRecord, options: ReplayOptions): Promise<number> {
  if (hasChanges(options) || options.repeat !== undefined || options.out !== undefined)
    return vary(cli, record, options);
  const replayed = await replayIn(cli.parts.world)(record);
  if (!replayed.ok) return cli.fail(replayed);
  const { difference } = replayed.value;
  show(cli, replayed.value);
  cli.document({ ok: difference === undefined, ...replayed.value });
  return difference === undefined ? EXIT.done : EXIT.failed;
}

function show(cli: Cli, { runs, entries, labels, difference }: Replayed): void {
  showLabels(cli, labels, { a: "record", b: "replay" });
  const size = `${count(runs, "run")}, ${count(entries, "entry", "entries")}`;
  if (difference === undefined) {
    cli.line(`No difference: ${size}`);
    return;
  }
  const { runId, sessionKey, step } = difference;
  const [expected, got] = fromDifference(difference.expected, difference.got, SHOWN_CHARS);
  cli.say(`First difference (${size}): ${step} of run ${runId}, session ${sessionKey}`);
  cli.say(`  record  ${expected}`);
  cli.say(`  replay  ${got}`);
}

export async function replayChain(cli: Cli, options: ReplayOptions): Promise<number> {
  const { chain: named, file } = options;
  if (named !== undefined && file !== undefined) {
    return cli.misuse("name a chain, or a record with --file, not both");
  }
  if (file !== undefined) {
    const record = await readRecordFile(cli.parts.folder, file);
    return record.ok ? report(cli, record.value, options) : cli.fail(record);
  }
  return withLink(cli, async (link) => {
    const chains = named === undefined ? await newestChains(link, 1) : ok([named]);
    if (!chains.ok) return cli.fail(chains);
    const [chainId = ""] = chains.value;
    const text = await fetchRecord(cli, link, chainId);
    if (!text.ok) return cli.fail(text);
    if (named === undefined) cli.note(safeLine(`Chain ${chainId}`));
    const record = readRecord(text.value);
    if (!record.ok) return cli.fail(record);
    if (options.save === undefined) return report(cli, record.value, options);
    const saved = await saveRecord(cli, options.save, text.value);
    if (!saved.ok) return cli.fail(saved);
    cli.note(safeLine(`Wrote the record to ${options.save}.`));
    return report(cli, record.value, options);
  });
}
