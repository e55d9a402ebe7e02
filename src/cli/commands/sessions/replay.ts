// Implements `parley replay`: runs a recorded chain again, without models, and names the first difference.

import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readRecord } from "../../../contract/chain-record.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { fetchRecord } from "../../chain-record.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import type { ReplayReport } from "../../parts.ts";

interface ReplayOptions {
  readonly file?: string;
  readonly save?: string;
}

/** Characters of a difference that are shown. */
const SHOWN_CHARS = 600;
const CONTEXT_CHARS = 80;
const YEAR_MINUTES = 366 * 24 * 60;

function problem(error: unknown, file: string, what: string): Failure {
  return fail("file_problem", `${file} could not be ${what}: ${(error as Error).message}`);
}

/** Returns the parts of two texts that begin shortly before their first difference. */
function shownFrom(expected: string, got: string): readonly [string, string] {
  let at = 0;
  while (at < expected.length && expected[at] === got[at]) at += 1;
  const from = Math.max(0, at - CONTEXT_CHARS);
  const part = (text: string): string => {
    const shown = text.slice(from, from + SHOWN_CHARS);
    return `${from > 0 ? "…" : ""}${shown}${from + SHOWN_CHARS < text.length ? "…" : ""}`;
  };
  return [part(expected), part(got)];
}

async function report(cli: Cli, text: string): Promise<number> {
  const record = readRecord(text);
  if (!record.ok) return cli.fail(record);
  const replayed = await cli.parts.replay(record.value);
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
  const [expected, got] = shownFrom(difference.expected, difference.got);
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

async function save(cli: Cli, file: string, text: string): Promise<Result<void>> {
  try {
    return ok(await writeFile(resolve(cli.parts.folder, file), text, { flag: "wx", mode: 0o600 }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST")
      return fail("file_problem", `${file} exists already. Name a new file, or remove that one first.`);
    return problem(error, file, "written");
  }
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
    let text: string;
    try {
      text = await readFile(resolve(cli.parts.folder, file), "utf8");
    } catch (error) {
      return cli.fail(problem(error, file, "read"));
    }
    return report(cli, text);
  }
  return withLink(cli, async (link) => {
    const chainId = named === undefined ? await newestChain(link) : ok(named);
    if (!chainId.ok) return cli.fail(chainId);
    const text = await fetchRecord(link, chainId.value);
    if (!text.ok) return cli.fail(text);
    if (named === undefined) cli.note(safeLine(`Chain ${chainId.value}`));
    if (options.save === undefined) return report(cli, text.value);
    const saved = await save(cli, options.save, text.value);
    if (!saved.ok) return cli.fail(saved);
    cli.note(safeLine(`Wrote the record to ${options.save}.`));
    return report(cli, text.value);
  });
}
