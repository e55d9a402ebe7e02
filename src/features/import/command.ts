// Implements `parley import`: imports the state directory of another program and reports what was left out.
// Shows only names, counts and paths of the source, never its values. A setting that the user has to accept
// is shown with its effect.

import { resolve } from "node:path";
import { type Cli, EXIT, stopOnSignals } from "../../cli/cli.ts";
import { count } from "../../cli/layout.ts";
import { openPrompter } from "../../cli/prompter.ts";
import { quoteWord } from "../../cli/shell-words.ts";
import { optional } from "../../core/optional.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { TrustedSetting } from "./config/trust.ts";
import { type ImportReport, importState } from "./import-state.ts";

/** Number of sessions between two progress reports. */
const PROGRESS_SESSIONS = 100;
const LEFT_SHOWN = 30;

function configLines({ config, dryRun }: ImportReport): string[] {
  const { kind, path = "", notes, left } = config;
  const would = dryRun ? "would be " : "";
  const first = {
    none: "Configuration: nothing could be imported.",
    there: `Configuration: ${path} has the same content already.`,
    written: `Configuration: ${would}written to ${path}.`,
    proposed: `Configuration: a file exists already, so the import ${dryRun ? "would be" : "is"} in ${path}.`,
  }[kind];
  const shown = left.slice(0, LEFT_SHOWN).join(", ");
  const more = left.length > LEFT_SHOWN ? ` and ${left.length - LEFT_SHOWN} more` : "";
  return [
    first,
    ...notes.map((note) => `  - ${note}`),
    ...(left.length === 0 ? [] : [`  - not supported here: ${shown}${more}`]),
  ];
}

/** Returns the arguments that accept these settings: groups, and names of those that no group accepts. */
function acceptance(settings: ImportReport["config"]["trusted"]): string {
  const words = settings.map(({ name, group, byName }) => (byName === true ? name : group));
  return [...new Set(words)].map(quoteWord).join(" ");
}

/** Returns a line for each workspace. */
function workspaceLines({ workspaces, dryRun }: ImportReport): string[] {
  const would = dryRun ? "would be " : "";
  return workspaces.map(({ agentId, from, to, how, files, memory }) => {
    const done = {
      copied: `${count(files, "file")} ${would}copied from ${from} to ${to}`,
      linked: `${would}used where it is: ${from}`,
      unchanged: `all files of ${from} are in ${to} already`,
    }[how];
    const known = memory.length === 0 ? "" : `; its memory ${would}${memory.join(", ")}`;
    return `Workspace of ${agentId}: ${done}${known}.`;
  });
}

/**
 * Returns a line for each setting that the user has to accept: its effect, and the option that accepts it.
 */
function trustLines({ config, from }: ImportReport): string[] {
  const left = config.trusted.filter(({ accepted }) => !accepted);
  const taken = config.trusted.filter(({ accepted }) => accepted);
  const list = (settings: ImportReport["config"]["trusted"]): string[] =>
    settings.map(({ name, text }) => `  - ${name}: ${text}`);
  return [
    ...(taken.length === 0 ? [] : ["Accepted:", ...list(taken)]),
    ...(left.length === 0
      ? []
      : [
          "Left out until you accept them:",
          ...list(left),
          `  Take all of these: npx parley-gateway import ${quoteWord(from)} --accept ${acceptance(left)}`,
        ]),
  ];
}

function sessionLines({ sessions, entries, repairs, dryRun }: ImportReport): string[] {
  const { added, toppedUp, unchanged, leftAlone, leftAloneCount } = sessions;
  const would = dryRun ? "would be " : "";
  const { callsWithoutResult, resultsWithoutCall } = repairs;
  return [
    `Sessions: ${added} ${would}added, ${toppedUp} ${would}extended, ${unchanged} unchanged, ` +
      `${leftAloneCount} skipped; ${entries} transcript entries ${would}written.`,
    ...leftAlone.map(({ key, why }) => `  - ${key}: ${why}`),
    ...(leftAloneCount > leftAlone.length ? [`  - and ${leftAloneCount - leftAlone.length} more`] : []),
    ...(callsWithoutResult + resultsWithoutCall === 0
      ? []
      : [
          `  - tool calls without a result: ${callsWithoutResult} (each got a result that says so); ` +
            `results without a call: ${resultsWithoutCall} (left out)`,
        ]),
  ];
}

/** Returns a line for each kind of shared state that the source has. */
function stateLines({ jobs, people, nodes, dryRun }: ImportReport): string[] {
  const would = dryRun ? "would be " : "";
  const kinds = [
    ["Scheduled jobs", jobs, ", paused: enable each with npx parley-gateway cron update ID --enable"],
    ["Paired people", people, ""],
    ["Nodes", nodes, ""],
  ] as const;
  return kinds
    .filter(([, { added, unchanged }]) => added + unchanged > 0)
    .map(([name, { added, unchanged }, hint]) => {
      return `${name}: ${added} ${would}added, ${unchanged} unchanged${added > 0 ? hint : ""}.`;
    });
}

function remarkLines({ remarks }: ImportReport): string[] {
  if (remarks.length === 0) return [];
  const lines = remarks.map(({ what, count: times, examples }) => {
    const more = times > examples.length && examples.length > 0 ? ", …" : "";
    return `  - ${what}: ${times}${examples.length === 0 ? "" : ` (${examples.join(", ")}${more})`}`;
  });
  return ["Changed or left out:", ...lines];
}

interface ImportOptions {
  readonly dir: string;
  readonly dryRun?: boolean;
  readonly accept?: readonly string[];
  readonly link?: boolean;
}

export async function runImport(
  cli: Cli,
  { dir, dryRun = false, accept = [], link = false }: ImportOptions,
): Promise<number> {
  const { parts, options } = cli;
  using stop = stopOnSignals(parts, () =>
    cli.note("Stopping after this session. Run the same command again to continue."),
  );
  const ask = async ({ name, group, text }: TrustedSetting): Promise<Result<boolean | "link">> => {
    const prompter = await openPrompter(parts);
    if (group !== "workspaces") return prompter.confirm(safeLine(`${name} ${text}. Import it?`));
    const way = await prompter.choose(safeLine(`${name} ${text}.`), [
      { value: "no", label: "Leave it" },
      { value: "copy", label: "Copy its files" },
      { value: "link", label: "Use it where it is" },
    ]);
    if (!way.ok) return way;
    return ok(way.value === "link" ? "link" : way.value === "copy");
  };
  const facts = await importState({
    env: parts.env,
    home: parts.home,
    world: parts.world,
    dir: dir.startsWith("~/") ? `${parts.home}${dir.slice(1)}` : resolve(dir),
    dryRun,
    ...{ accept: accept.flatMap((names) => names.split(",")), link },
    ...(parts.isTTY && !options.json && !dryRun ? { ask } : {}),
    signal: stop.signal,
    progress: (sessions) => {
      if (parts.isTTY && sessions % PROGRESS_SESSIONS === 0) cli.note(`${count(sessions, "session")} so far`);
    },
    ...optional({ configPath: options.config }),
  });
  if (!facts.ok) return cli.fail(facts);
  const { from, to, interrupted } = facts.value;
  cli.say(dryRun ? `Dry run, nothing is written: from ${from} to ${to}` : `From ${from} to ${to}`);
  for (const lines of [configLines, trustLines, workspaceLines, sessionLines, stateLines, remarkLines]) {
    for (const line of lines(facts.value)) cli.say(line);
  }
  if (interrupted) cli.line("The import was interrupted. Run the same command again to continue.");
  cli.document({ ok: !interrupted, ...facts.value });
  return interrupted ? EXIT.failed : EXIT.done;
}
