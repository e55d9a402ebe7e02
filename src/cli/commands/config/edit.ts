// Implements `parley config edit`: opens a private copy of the configuration file in an editor, and saves it.
// An edited text that was not saved is kept in a file that only the user can read, unless the user declined
// to save it.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { configPathOf } from "../../../config.ts";
import { safeText } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT, loadOptionsOf, type Trouble } from "../../cli.ts";
import { type ConfigDesk, withConfigFile } from "./file.ts";
import { showChange, showEffect } from "./values.ts";

/** Runs the user's editor on a file. Ctrl-C is for the editor, so it does not end this program. */
async function openEditor({ parts }: Cli, file: string): Promise<Trouble | undefined> {
  const { env, machine, onSignal } = parts;
  const editor = env.VISUAL || env.EDITOR || "vi";
  const options = { stdio: "inherit", env } as const;
  const child =
    machine.platform === "win32"
      ? spawn(`${editor} "${file}"`, { ...options, shell: true })
      : spawn("sh", ["-c", `${editor} "$@"`, editor, file], options);
  const end = () => child.kill();
  const releases = [onSignal("SIGINT", () => {}), onSignal("SIGTERM", end), onSignal("SIGHUP", end)];
  const problem = await new Promise<string | undefined>((resolve) => {
    child.once("error", ({ message }) => resolve(message));
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : signal === null ? `exit code ${code}` : `it was stopped by ${signal}`),
    );
  });
  for (const release of releases) release();
  if (problem === undefined) return undefined;
  const error = `the editor \`${editor}\` failed: ${problem}. Nothing was written.`;
  return { code: "editor_failed", error, hint: "Name your editor in VISUAL or EDITOR." };
}

/** Asks a question whose default is yes. Returns undefined if the input ended. */
function ask({ parts: { stdin, stdout } }: Cli, question: string): Promise<boolean | undefined> {
  const lines = createInterface({ input: stdin, output: stdout });
  return new Promise((resolve) => {
    lines.once("close", () => resolve(undefined));
    lines.question(`${question} [Y/n] `, (answer) => {
      resolve(!/^n/i.test(answer.trim()));
      lines.close();
    });
  });
}

/** Reports a failure, and keeps the edited text beside this machine's configuration file. */
function keep(cli: Cli, text: string, trouble: Trouble): number {
  const { world } = cli.parts;
  const base = configPathOf(loadOptionsOf(cli));
  const kept = `${base}.edited-${world.clock.now()}`;
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  writeFileSync(kept, text, { flag: "wx", mode: 0o600 });
  const error = `${trouble.error}\nYour text was kept in ${kept}`;
  return cli.fail({ ...trouble, error, details: { ...trouble.details, kept } });
}

interface EditOptions {
  readonly yes?: boolean;
}

interface Draft {
  readonly text: string;
  readonly revision: string;
  /** The private copy. */
  readonly file: string;
}

/** Shows what an edit changes, and saves it if the user agrees. Returns undefined to edit again. */
async function finish(cli: Cli, desk: ConfigDesk, { revision }: Draft, text: string, { yes }: EditOptions) {
  const canAsk = cli.parts.isTTY && !cli.options.json;
  const checked = await desk.set(text, { revision, dryRun: true });
  if (!checked.ok) return keep(cli, text, checked);
  const { errors } = checked.value;
  if (errors.length > 0) {
    const trouble = { code: "invalid_config", error: errors.join("\n") };
    if (!canAsk) return keep(cli, text, trouble);
    cli.note(safeText(trouble.error));
    return (await ask(cli, "Edit again?")) === true ? undefined : keep(cli, text, trouble);
  }
  showChange(cli, checked.value);
  showEffect(cli, checked.value, desk);
  if (yes !== true) {
    const answer = await ask(cli, "Save?");
    if (answer === undefined) return keep(cli, text, { code: "cancelled", error: "Nothing was saved." });
    if (!answer) cli.note("Nothing was saved.");
    if (!answer) return EXIT.failed;
  }
  const saved = await desk.set(text, { revision, dryRun: false });
  if (!saved.ok) return keep(cli, text, saved);
  showEffect(cli, saved.value, desk);
  cli.document({ ok: true, ...saved.value });
  return EXIT.done;
}

async function edit(cli: Cli, desk: ConfigDesk, draft: Draft, options: EditOptions): Promise<number> {
  const trouble = await openEditor(cli, draft.file);
  if (trouble !== undefined) return cli.fail(trouble);
  const text = readFileSync(draft.file, "utf8");
  if (text === draft.text) {
    cli.line("Nothing changes.");
    cli.document({ ok: true, saved: false });
    return EXIT.done;
  }
  return (await finish(cli, desk, draft, text, options)) ?? edit(cli, desk, draft, options);
}

export async function editConfig(cli: Cli, options: EditOptions): Promise<number> {
  if (options.yes !== true && (!cli.parts.isTTY || cli.options.json)) {
    const error = "There is no terminal to ask before saving. Give --yes.";
    return cli.fail({ code: "invalid_argument", error }, EXIT.usage);
  }
  return withConfigFile(cli, async (desk) => {
    const read = await desk.draft();
    if (!read.ok) return cli.fail(read);
    const folder = mkdtempSync(join(tmpdir(), "parley-edit-"));
    try {
      const file = join(folder, "parley.json5");
      writeFileSync(file, read.value.text, { mode: 0o600 });
      return await edit(cli, desk, { ...read.value, file }, options);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
