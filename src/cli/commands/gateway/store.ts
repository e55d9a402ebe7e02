// Implements `parley store`: shows, backs up, restores, migrates and recovers the store.
// Each command prints the next step. Addresses are printed without user name and password.

import { optional } from "../../../core/optional.ts";
import { fail, type Result } from "../../../core/shapes/errors.ts";
import type { ProcessRow } from "../../../core/shapes/process.ts";
import { defaultAgent, type Settings, type StoreSettings } from "../../../core/shapes/settings/settings.ts";
import { added } from "../../../features.ts";
import type { StoreFacts } from "../../../store/show.ts";
import type { Grants } from "../../../store/transfer/grants.ts";
import type { Recovered } from "../../../store/transfer/recover.ts";
import type { Tally } from "../../../store/transfer/tally.ts";
import type { Moved } from "../../../store/transfer/transfer.ts";
import { loadedSettings } from "../../address.ts";
import { type Cli, EXIT, stopOnSignals } from "../../cli.ts";
import { age, count, size, table } from "../../layout.ts";
import type { MoveWatch, StoreTools } from "../../parts.ts";
import { openPrompter } from "../../prompter.ts";

/** Number of rows between two progress reports. */
const PROGRESS_ROWS = 10_000;

function tallyText(tally: Tally): string {
  const { sessions, messages, runs } = tally;
  return `${count(sessions, "session")}, ${count(messages, "message")}, ${count(runs, "run")}`;
}

/**
 * Describes the unfinished work in a store, which a gateway would continue. Returns undefined if there is
 * none.
 */
function describeUnfinished({ unfinishedRuns, pendingDeliveries }: Tally): string | undefined {
  const parts = [
    ...(unfinishedRuns === 0 ? [] : [count(unfinishedRuns, "unfinished run")]),
    ...(pendingDeliveries === 0
      ? []
      : [`${count(pendingDeliveries, "pending delivery", "pending deliveries")}`]),
  ];
  return parts.length === 0 ? undefined : parts.join(" and ");
}

function processLines(processes: readonly ProcessRow[], nowMs: number): string[] {
  if (processes.length === 0) return ["No gateway uses this store."];
  const rows = processes.map(({ processId, host, version, configRevision, startedAt, beatAt, alive }) => [
    processId,
    host,
    version,
    configRevision ?? "unknown",
    `${age(startedAt, nowMs)} ago`,
    alive ? "alive" : `stopped ${age(beatAt, nowMs)} ago`,
  ]);
  return table(["GATEWAY", "HOST", "VERSION", "SETTINGS", "STARTED", "STATE"], rows);
}

function factLines(facts: StoreFacts, nowMs: number): string[] {
  const { kind, place, schema, holds, use, processes } = facts;
  const { version, known } = schema;
  const others = version === known ? "" : ` (this program uses schema version ${known})`;
  const waiting = holds === undefined ? undefined : describeUnfinished(holds.tally);
  return [
    `${kind === "embedded" ? "Embedded store" : "PostgreSQL store"} in ${place}`,
    ...(version === undefined
      ? ["schema   none; the store does not exist yet"]
      : [`schema   version ${version}${others}`]),
    ...(holds === undefined
      ? []
      : [
          `holds    ${tallyText(holds.tally)}${waiting === undefined ? "" : `; ${waiting}`}`,
          `size     ${size(holds.bytes)}`,
        ]),
    ...(use === undefined ? [] : [`use      ${use}`]),
    ...(processes === undefined ? [] : processLines(processes, nowMs)),
  ];
}

export async function showStore(cli: Cli): Promise<number> {
  const settings = await loadedSettings(cli);
  if (!settings.ok) return cli.fail(settings);
  const facts = await cli.parts.store.show(settings.value.store);
  if (!facts.ok) return cli.fail(facts);
  const { holds, ...rest } = facts.value;
  for (const line of factLines(facts.value, cli.parts.world.clock.now())) cli.say(line);
  cli.document({
    ok: true,
    ...rest,
    ...holds?.tally,
    ...optional({ bytes: holds?.bytes }),
  });
  return EXIT.done;
}

type Move<M extends Moved> = (settings: Settings, watch: MoveWatch) => Promise<Result<M>>;

/**
 * Runs a store operation and reports its result. The first signal cancels the operation and undoes its
 * changes. `describe` returns the lines for people.
 */
async function make<M extends Moved>(
  cli: Cli,
  move: Move<M>,
  describe: (moved: M, settings: StoreSettings) => readonly string[],
): Promise<number> {
  const { parts } = cli;
  const settings = await loadedSettings(cli);
  if (!settings.ok) return cli.fail(settings);
  using stop = stopOnSignals(parts, () =>
    cli.note("Stopping and undoing all changes. Press Ctrl-C again to stop at once."),
  );
  let reported = 0;
  const showProgress = (rows: number): void => {
    if (!parts.isTTY || rows - reported < PROGRESS_ROWS) return;
    reported = rows;
    cli.note(`${rows} rows so far`);
  };
  const moved = await move(settings.value, { signal: stop.signal, copied: showProgress });
  if (!moved.ok) return cli.fail(moved, moved.code === "invalid_argument" ? EXIT.usage : EXIT.failed);
  for (const line of describe(moved.value, settings.value.store)) cli.say(line);
  const { tally, ...rest } = moved.value;
  cli.document({ ok: true, ...rest, ...tally });
  return EXIT.done;
}

/** Tells the user how to make the gateways use the migrated database. */
function nextSteps(to: string, { postgresUrl }: StoreSettings): string {
  const start = `check with "npx parley-gateway doctor", then start: npx parley-gateway gateway`;
  if (postgresUrl === to) return `Next: ${start}`;
  return `Next: set store.postgresUrl (or PARLEY_DATABASE_URL) to that address, ${start}`;
}

/** Returns a line for each object in the source database that is not part of a Parley store. */
function leftOutLines({ leftOut = [] }: Moved): string[] {
  if (leftOut.length === 0) return [];
  return [`Left out, because Parley did not create it: ${leftOut.join(", ")}.`];
}

export async function migrateStore(cli: Cli, options: { readonly to: string }): Promise<number> {
  const move: Move<Moved> = ({ store }, watch) => cli.parts.store.migrate(store, options.to, watch);
  return make(cli, move, (moved, settings) => {
    const { from, to, tally } = moved;
    const left = describeUnfinished(tally);
    return [
      `Copied ${tallyText(tally)} from ${from} to ${to}.`,
      ...leftOutLines(moved),
      "The embedded store is unchanged. Do not start a gateway on it again: the two stores would diverge.",
      ...(left === undefined ? [] : [`A gateway that starts on the new store continues ${left}.`]),
      nextSteps(options.to, settings),
    ];
  });
}

export async function backupStore(cli: Cli, { file }: { readonly file: string }): Promise<number> {
  const move: Move<Moved> = ({ store }, watch) => cli.parts.store.backup(store, file, watch);
  return make(cli, move, ({ from, to, tally, bytes = 0 }) => [
    `Wrote ${tallyText(tally)} from ${from} to ${to} (${size(bytes)}, readable only by you).`,
    "The file holds all conversations. To restore it into an empty store: " +
      `npx parley-gateway store restore ${to}`,
  ]);
}

const FEATURE_GRANTS = Object.entries<{ readonly summary: string }>(added("grants"));
/** The kinds of rows in a backup that give rights. */
const GRANTS: Readonly<Record<string, string>> = {
  rules: "commands that run without a question",
  people: "people on channels",
  memory: "memories of agents",
  tokens: "access tokens and devices",
  ...Object.fromEntries(FEATURE_GRANTS.map(([kind, { summary }]) => [kind, summary])),
};

const grantLines = ({ kind, count: n, lines }: Grants): string[] => [
  `${kind}: ${GRANTS[kind]} (${n})`,
  ...lines.map((line) => `  ${line}`),
  ...(lines.length < n ? ["  …"] : []),
];

/** Asks about each kind of rows that give rights. Where nobody can be asked, accepts none. */
async function askAbout(cli: Cli, grants: readonly Grants[]): Promise<readonly string[]> {
  if (!cli.parts.isTTY || cli.options.json) return [];
  const prompter = await openPrompter(cli.parts);
  const accepted: string[] = [];
  cli.line("This backup also holds what gives rights. Accept only what you know.");
  for (const grant of grants) {
    for (const line of grantLines(grant)) cli.say(line);
    const answer = await prompter.confirm(`Restore ${grant.kind}?`);
    if (answer.ok && answer.value) accepted.push(grant.kind);
  }
  return accepted;
}

/** Tells which rows were left out, and how to restore them, too. */
function withheldLines(file: string, withheld: readonly Grants[], { postgresUrl }: StoreSettings): string[] {
  if (withheld.length === 0) return [];
  const first = postgresUrl === undefined ? "move parley.sqlite away" : "drop the schema";
  const kinds = withheld.map(({ kind }) => kind).join(",");
  return [
    "Left out, because it gives rights and was not accepted:",
    ...withheld.flatMap((grant) => grantLines(grant).map((line) => `  ${line}`)),
    `To restore it, too, ${first} and run: npx parley-gateway store restore ${file} --accept ${kinds}`,
  ];
}

export async function restoreStore(
  cli: Cli,
  { file, accept }: { readonly file: string; readonly accept?: string },
): Promise<number> {
  const all = Object.keys(GRANTS);
  const named = accept?.split(",").map((kind) => kind.trim()) ?? [];
  const unknown = named.filter((kind) => kind !== "all" && !all.some((one) => one === kind));
  if (unknown.length > 0) {
    const hint = `Valid kinds: all, ${all.join(", ")}.`;
    return cli.fail(
      fail("invalid_argument", `--accept: unknown ${unknown.join(", ")}`, { hint }),
      EXIT.usage,
    );
  }
  const chosen = all.filter((kind) => named.includes(kind) || named.includes("all"));
  const ask: Parameters<StoreTools["restore"]>[2]["accept"] = async (grants) =>
    accept === undefined ? askAbout(cli, grants) : chosen;
  const move: Move<Moved> = ({ store }, watch) =>
    cli.parts.store.restore(store, file, { ...watch, accept: ask });
  return make(cli, move, (moved, settings) => {
    const { from, to, tally } = moved;
    const left = describeUnfinished(tally);
    const again = "even if another gateway finished them after the backup";
    return [
      `Restored ${tallyText(tally)} from ${from} to ${to}.`,
      ...leftOutLines(moved),
      ...withheldLines(file, moved.withheld ?? [], settings),
      ...(left === undefined ? [] : [`A gateway that starts on this store continues ${left}, ${again}.`]),
      "Next: npx parley-gateway gateway",
    ];
  });
}

export async function recoverStore(cli: Cli): Promise<number> {
  const move: Move<Recovered> = (settings, watch) => {
    const { mainKey, scope } = settings.session;
    const keys = { mainKey, scope, defaultAgentId: defaultAgent(settings).id };
    return cli.parts.store.recover(settings.store, keys, watch);
  };
  return make(cli, move, ({ to, kept, tally, incomplete, backup }) => {
    const left = describeUnfinished(tally);
    return [
      `Rebuilt the store in ${to}: ${tallyText(tally)}.`,
      ...(incomplete.length === 0 ? [] : [`Some rows are lost in: ${incomplete.join(", ")}.`]),
      ...(backup === undefined ? [] : [`Sessions and messages that it still has come from ${backup}.`]),
      `The old files are in ${kept}.`,
      ...(left === undefined
        ? []
        : [`A gateway that starts on this store continues ${left}. Some may have been finished already.`]),
      "Next: npx parley-gateway gateway",
    ];
  });
}
