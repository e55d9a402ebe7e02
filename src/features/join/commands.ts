// Implements `parley join PROGRAM` and `parley leave PROGRAM`.
// Joining writes the configuration of a coding agent in this folder, so that each of its windows is a
// session. Leaving undoes these changes.

import { type Cli, EXIT } from "../../cli/cli.ts";
import { inNpxCache } from "../../cli/npx-cache.ts";
import { openPrompter } from "../../cli/prompter.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { diffOf, makeChange, planChanges, planUndo, undoChange } from "./change.ts";
import { PROGRAM, type ProgramId } from "./programs.ts";
import {
  dropRecord,
  handleFor,
  isOfPlugin,
  type JoinRecord,
  listRecords,
  recordFor,
  shareSession,
  startWords,
  writeRecord,
} from "./record.ts";
import { makeTokens, revokeTokens } from "./tokens.ts";
import type { Wake } from "./words.ts";

interface JoinOptions {
  readonly program: string;
  readonly session?: string;
  readonly wake?: Wake;
  readonly notify?: string;
  readonly yes?: boolean;
}

const HANDLE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,61}$/;

/** Asks for the user's consent to a change of files. */
async function askAgreement(cli: Cli, yes: boolean | undefined, question: string): Promise<Result<boolean>> {
  if (yes === true) return ok(true);
  if (!cli.parts.isTTY || cli.options.json) {
    const hint = "Add --yes to change the files without a question.";
    const error = "Joining and leaving need your consent, and there is no terminal to ask.";
    return fail("invalid_argument", error, { hint });
  }
  return (await openPrompter(cli.parts)).confirm(question);
}

function handleOf(cli: Cli, program: ProgramId, named: string | undefined): Result<string> {
  const { folder, home } = cli.parts;
  const handle = named ?? handleFor(program, folder);
  if (!HANDLE.test(handle)) {
    return fail(
      "invalid_argument",
      `--session must have 1 to 62 of the characters A-Z, a-z, 0-9, ".", "_", "-"; got "${handle}"`,
    );
  }
  const other = listRecords(home).find((record) => shareSession(record.handle, handle));
  if (other === undefined) return ok(handle);
  return fail("invalid_argument", `${other.program} in ${other.folder} already uses the name ${handle}`, {
    hint: "Choose another name with --session.",
  });
}

/** Renews the tokens of a program that has joined, and applies changed options. */
async function joinAgain(cli: Cli, known: JoinRecord, options: JoinOptions): Promise<number> {
  const text = `${PROGRAM[known.program].name} has joined in this folder as ${known.handle}`;
  if (options.session !== undefined && options.session !== known.handle) {
    const hint = `First: npx parley-gateway leave ${known.program}`;
    return cli.fail({ code: "invalid_argument", error: text, hint });
  }
  // Make new tokens, because the gateway's token may have changed since the program joined.
  const tokens = await makeTokens(cli, known.handle, known.series);
  if (!tokens.ok) return cli.fail(tokens);
  writeRecord(cli.parts, { ...known, ...tokens.value, ...wishesOf(options) });
  cli.say(`${text}. Its configuration needs no change.`);
  cli.document({ ok: true, handle: known.handle, changed: [] });
  return EXIT.done;
}

const wishesOf = ({ wake, notify }: JoinOptions): Pick<JoinRecord, "wake" | "notify"> =>
  optional({ wake, notify });

export async function joinProgram(cli: Cli, options: JoinOptions): Promise<number> {
  const id = options.program as ProgramId;
  const program = PROGRAM[id];
  const known = recordFor(cli.parts, id);
  if (known !== undefined) return joinAgain(cli, known, options);
  const cached = inNpxCache(cli, `npx parley-gateway join ${id}`);
  if (cached !== undefined) return cli.fail(cached);
  const handle = handleOf(cli, id, options.session);
  if (!handle.ok) return cli.fail(handle);
  const tokens = await makeTokens(cli, handle.value);
  if (!tokens.ok) return cli.fail(tokens);
  const { folder } = cli.parts;
  const start = startWords(cli);
  const commands = {
    mcp: [...start, "mcp", "--joined", handle.value],
    hook: [...start, "inbox", "--hook", id, "--joined", handle.value],
  };
  const changes = planChanges(program.edits(folder, commands));
  if (!changes.ok) return cli.fail(changes);
  for (const change of changes.value) for (const line of diffOf(change)) cli.say(line);
  const consent = await askAgreement(cli, options.yes, "Make these changes?");
  if (!consent.ok) return cli.fail(consent);
  if (!consent.value) return cli.fail({ code: "cancelled", error: "Nothing was changed." });
  // Write the record before the files: after a crash in between, `leave` then knows which changes to undo.
  writeRecord(cli.parts, {
    handle: handle.value,
    program: id,
    folder,
    changes: changes.value,
    ...tokens.value,
    ...wishesOf(options),
  });
  for (const change of changes.value) makeChange(change);
  cli.say(`${program.name} has joined as ${handle.value}. Undo: npx parley-gateway leave ${id}`);
  for (const note of program.notes) cli.line(note);
  cli.document({ ok: true, handle: handle.value, changed: changes.value.map(({ edit }) => edit.file) });
  return EXIT.done;
}

export async function leaveProgram(
  cli: Cli,
  { program: word, yes }: Pick<JoinOptions, "program" | "yes">,
): Promise<number> {
  const id = word as ProgramId;
  const program = PROGRAM[id];
  const record = recordFor(cli.parts, id);
  if (record === undefined) {
    return cli.fail({
      code: "not_found",
      error: `${program.name} has not joined in this folder.`,
      hint: "Run this command in the folder in which the program joined.",
    });
  }
  const undone = record.changes.toReversed().flatMap((change) => {
    const undo = planUndo(change);
    return undo === undefined ? [] : [{ change, undo }];
  });
  for (const { change, undo } of undone) {
    const before = undo.text === change.after ? "" : change.after;
    const lines =
      undo.text === undefined
        ? [`remove ${change.edit.file}`]
        : diffOf({ ...change, before, after: undo.text });
    for (const line of lines) cli.say(line);
  }
  const consent = await askAgreement(cli, yes, "Undo these changes?");
  if (!consent.ok) return cli.fail(consent);
  if (!consent.value) return cli.fail({ code: "cancelled", error: "Nothing was changed." });
  for (const { change, undo } of undone) undoChange(change, undo);
  const kept = await revokeTokens(cli, record);
  dropRecord(cli.parts.home, record.handle);
  const problems = undone.flatMap(({ undo }) => undo.problems);
  if (kept !== undefined) {
    const { series } = record;
    const command = `npx parley-gateway call session.token.revoke '${JSON.stringify({ series })}'`;
    const todo = `Start the gateway, and run: ${command}`;
    cli.note(safeLine(`The tokens of its windows were not revoked: ${kept}. ${todo}`));
  }
  for (const problem of problems) cli.note(safeLine(problem));
  if (isOfPlugin(record))
    cli.note("Its plugin joins again with the next window. Disable it to prevent that.");
  cli.say(`${program.name} has left ${record.handle}.`);
  cli.document({ ok: true, handle: record.handle, problems, revoked: kept === undefined });
  return problems.length === 0 ? EXIT.done : EXIT.failed;
}
