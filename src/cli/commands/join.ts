// Implements `parley join PROGRAM` and `parley leave PROGRAM`.
// Joining writes the configuration of a coding agent in this folder, so that each of its windows is a
// session. Leaving undoes these changes.

import { realpathSync } from "node:fs";
import { sessionToken } from "../../contract/session-token.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { formatKey } from "../../core/shapes/session-key.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { findAddress } from "../address.ts";
import { openPrompter } from "../channels/prompter.ts";
import { type Cli, EXIT } from "../cli.ts";
import { type Change, diffOf, makeChange, planChanges, planUndo, undoChange } from "../join/change.ts";
import { type Commands, PROGRAM, type ProgramId } from "../join/programs.ts";
import {
  dropRecord,
  handleFor,
  type JoinRecord,
  listRecords,
  WINDOWS_MAX,
  windowHandle,
  writeRecord,
} from "../join/record.ts";

interface JoinOptions {
  readonly session?: string;
  readonly yes?: boolean;
}

const HANDLE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,61}$/;

function commandsFor({ parts, options }: Cli, program: ProgramId, handle: string): Commands {
  const { node, script } = parts.machine.launcher;
  const config = options.config ?? (parts.env.PARLEY_CONFIG || undefined);
  const start = [node, script];
  if (config !== undefined) start.push("--config", realpathSync(config));
  if (options.url !== undefined) start.push("--url", options.url);
  return {
    mcp: [...start, "mcp", "--joined", handle],
    hook: [...start, "inbox", "--hook", program, "--joined", handle],
  };
}

/** Derives one token for each window's session from the user's own token. */
async function tokensFor(cli: Cli, handle: string): Promise<Result<string[]>> {
  const address = await findAddress(cli);
  if (!address.ok) return address;
  const { token } = address.value;
  if (token === "") {
    return fail("unauthorized", "There is no token yet: the gateway generates one at its first start.", {
      hint: "Start the gateway: npx parley",
    });
  }
  const { loadSettings } = await import("../../config.ts");
  const { env, home } = cli.parts;
  const loaded = loadSettings({ env, home, ...optional({ configPath: cli.options.config }) });
  if (!loaded.ok) return loaded;
  const agentId = defaultAgent(loaded.value.settings).id;
  const keys = Array.from({ length: WINDOWS_MAX }, (_, at) =>
    formatKey({ form: "external", agentId, client: "mcp", id: windowHandle(handle, at + 1) }),
  );
  return ok(keys.map((key) => sessionToken(token, key)));
}

/** Asks for the user's consent before files are changed. */
async function agreed(cli: Cli, yes: boolean | undefined, question: string): Promise<Result<boolean>> {
  if (yes === true) return ok(true);
  if (!cli.parts.isTTY || cli.options.json) {
    const hint = "Add --yes to change the files without a question.";
    return fail(
      "invalid_argument",
      "Joining and leaving need your consent, and there is no terminal to ask.",
      {
        hint,
      },
    );
  }
  return (await openPrompter(cli.parts)).confirm(question);
}

function recordFor({ home, folder }: Cli["parts"], program: ProgramId): JoinRecord | undefined {
  return listRecords(home).find((record) => record.program === program && record.folder === folder);
}

function showChanges(cli: Cli, changes: readonly Change[]): void {
  for (const change of changes) for (const line of diffOf(change)) cli.line(safeLine(line));
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
  const other = listRecords(home).find((record) => record.handle === handle);
  if (other === undefined) return ok(handle);
  return fail("invalid_argument", `${other.program} in ${other.folder} already uses the name ${handle}`, {
    hint: "Choose another name with --session.",
  });
}

export async function joinProgram(
  cli: Cli,
  [word]: readonly string[],
  options: JoinOptions,
): Promise<number> {
  const id = word as ProgramId;
  const program = PROGRAM[id];
  const known = recordFor(cli.parts, id);
  if (known !== undefined) {
    const isOther = options.session !== undefined && options.session !== known.handle;
    const text = `${program.name} has already joined in this folder, as ${known.handle}`;
    if (isOther)
      return cli.fail({ code: "invalid_argument", error: text, hint: `Leave first: parley leave ${id}` });
    const tokens = await tokensFor(cli, known.handle);
    if (!tokens.ok) return cli.fail(tokens);
    // Write new tokens, because the gateway's token may have changed since the join.
    writeRecord(cli.parts, { ...known, tokens: tokens.value });
    cli.line(safeLine(`${text}. Nothing to change.`));
    cli.document({ ok: true, handle: known.handle, changed: [] });
    return EXIT.done;
  }
  const handle = handleOf(cli, id, options.session);
  if (!handle.ok) return cli.fail(handle);
  const tokens = await tokensFor(cli, handle.value);
  if (!tokens.ok) return cli.fail(tokens);
  const { folder } = cli.parts;
  const changes = planChanges(program.edits(folder, commandsFor(cli, id, handle.value)));
  if (!changes.ok) return cli.fail(changes);
  showChanges(cli, changes.value);
  const consent = await agreed(cli, options.yes, "Make these changes?");
  if (!consent.ok) return cli.fail(consent);
  if (!consent.value) return cli.fail({ code: "cancelled", error: "Nothing was changed." });
  // Write the record first: after a crash in between, `leave` then knows which changes to undo.
  const record = { handle: handle.value, program: id, folder, tokens: tokens.value, changes: changes.value };
  writeRecord(cli.parts, record);
  for (const change of changes.value) makeChange(change);
  cli.line(safeLine(`${program.name} has joined as ${handle.value}. Undo: parley leave ${id}`));
  for (const note of program.notes) cli.line(note);
  cli.document({ ok: true, handle: handle.value, changed: changes.value.map(({ edit }) => edit.file) });
  return EXIT.done;
}

export async function leaveProgram(
  cli: Cli,
  [word]: readonly string[],
  { yes }: Pick<JoinOptions, "yes">,
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
    for (const line of lines) cli.line(safeLine(line));
  }
  const consent = await agreed(cli, yes, "Undo these changes?");
  if (!consent.ok) return cli.fail(consent);
  if (!consent.value) return cli.fail({ code: "cancelled", error: "Nothing was changed." });
  for (const { change, undo } of undone) undoChange(change, undo);
  dropRecord(cli.parts.home, record.handle);
  const problems = undone.flatMap(({ undo }) => undo.problems);
  for (const problem of problems) cli.note(safeLine(problem));
  cli.line(safeLine(`${program.name} has left ${record.handle}.`));
  cli.document({ ok: true, handle: record.handle, problems });
  return problems.length === 0 ? EXIT.done : EXIT.failed;
}
