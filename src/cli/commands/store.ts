// Owns `parley store`: where the state is, a backup of it, its way back, its way to PostgreSQL, its recovery.
// SC1: what is to be done next is said; an address is named without user and password.

import { loadSettings } from "../../config.ts";
import type { Result } from "../../core/errors.ts";
import { safeLine } from "../../core/safe-text.ts";
import { defaultAgent, type Settings, type StoreSettings } from "../../core/settings.ts";
import { type Cli, EXIT } from "../cli.ts";
import { age, count, size, table } from "../layout.ts";
import type { MoveWatch, StoreFacts, StoreMove, StoreProcess, StoreRecovery, StoreTally } from "../parts.ts";

const INTERRUPTED = 130;
/** Between two words to somebody who watches. */
const ROWS_TOLD = 10_000;

/** The settings, or the exit code of what is wrong with the configuration. */
function settingsOf(cli: Cli): Settings | number {
  const { parts, options } = cli;
  const named = options.config === undefined ? {} : { configPath: options.config };
  const loaded = loadSettings({ env: parts.env, home: parts.home, ...named });
  return loaded.ok ? loaded.value.settings : cli.fail(loaded);
}

function inWords(tally: StoreTally): string {
  const { sessions, messages, runs } = tally;
  return `${count(sessions, "session")}, ${count(messages, "message")}, ${count(runs, "run")}`;
}

/** What a gateway would go on with; undefined: nothing. */
function unfinished({ unfinishedRuns, pendingDeliveries }: StoreTally): string | undefined {
  const parts = [
    ...(unfinishedRuns === 0 ? [] : [count(unfinishedRuns, "unfinished run")]),
    ...(pendingDeliveries === 0 ? [] : [`${count(pendingDeliveries, "text")} to be delivered`]),
  ];
  return parts.length === 0 ? undefined : parts.join(" and ");
}

function processLines(processes: readonly StoreProcess[], nowMs: number): string[] {
  if (processes.length === 0) return ["No gateway uses it."];
  const rows = processes.map(({ processId, host, version, startedAt, beatAt, alive }) => [
    processId,
    host,
    version,
    `${age(startedAt, nowMs)} ago`,
    alive ? "alive" : `gone ${age(beatAt, nowMs)} ago`,
  ]);
  return table(["GATEWAY", "HOST", "VERSION", "STARTED", "STATE"], rows);
}

function factLines(facts: StoreFacts, nowMs: number): string[] {
  const { kind, place, schema, holds, use, processes } = facts;
  const { version, known } = schema;
  const others = version === known ? "" : ` (this program writes ${known})`;
  const waiting = holds === undefined ? undefined : unfinished(holds.tally);
  return [
    `${kind === "embedded" ? "Embedded store" : "PostgreSQL store"} in ${place}`,
    ...(version === undefined
      ? ["schema   none: there is no store yet"]
      : [`schema   version ${version}${others}`]),
    ...(holds === undefined
      ? []
      : [
          `holds    ${inWords(holds.tally)}${waiting === undefined ? "" : `; ${waiting}`}`,
          `size     ${size(holds.bytes)}`,
        ]),
    ...(use === undefined ? [] : [`use      ${use}`]),
    ...(processes === undefined ? [] : processLines(processes, nowMs)),
  ];
}

export async function showStore(cli: Cli): Promise<number> {
  const settings = settingsOf(cli);
  if (typeof settings === "number") return settings;
  const facts = await cli.parts.store.show(settings.store);
  if (!facts.ok) return cli.fail(facts);
  const { holds, ...rest } = facts.value;
  for (const line of factLines(facts.value, cli.parts.world.clock.now())) cli.line(safeLine(line));
  cli.document({
    ok: true,
    ...rest,
    ...holds?.tally,
    ...(holds === undefined ? {} : { bytes: holds.bytes }),
  });
  return EXIT.done;
}

/** Does a move that the first signal stops in order, and a second SIGINT at once. */
async function stoppable(cli: Cli, move: (watch: MoveWatch) => Promise<number>): Promise<number> {
  const { parts } = cli;
  const stop = new AbortController();
  const offTerm = parts.onSignal("SIGTERM", () => stop.abort());
  const offInt = parts.onSignal("SIGINT", () => {
    if (stop.signal.aborted) return parts.exitNow(INTERRUPTED);
    cli.note("Stopping; nothing of it will stay. Ctrl-C again stops at once.");
    stop.abort();
  });
  let told = 0;
  const copied = (rows: number): void => {
    if (!parts.isTTY || rows - told < ROWS_TOLD) return;
    told = rows;
    cli.note(`${rows} rows so far`);
  };
  try {
    return await move({ signal: stop.signal, copied });
  } finally {
    offTerm();
    offInt();
  }
}

type Move<M extends StoreMove> = (settings: Settings, watch: MoveWatch) => Promise<Result<M>>;

/** Makes a move and says what came of it; `tell`: in words for people. */
async function make<M extends StoreMove>(
  cli: Cli,
  move: Move<M>,
  tell: (moved: M, settings: StoreSettings) => readonly string[],
): Promise<number> {
  const settings = settingsOf(cli);
  if (typeof settings === "number") return settings;
  return stoppable(cli, async (watch) => {
    const moved = await move(settings, watch);
    if (!moved.ok) return cli.fail(moved, moved.code === "invalid_argument" ? EXIT.usage : EXIT.failed);
    for (const line of tell(moved.value, settings.store)) cli.line(safeLine(line));
    const { tally, ...rest } = moved.value;
    cli.document({ ok: true, ...rest, ...tally });
    return EXIT.done;
  });
}

/** What to do so that gateways use the database that an embedded store was copied to. */
function nextSteps(to: string, { postgresUrl }: StoreSettings): string {
  const look = `look with "parley doctor", then start: parley gateway`;
  if (postgresUrl === to) return `Next: ${look}`;
  return `Next: set store.postgresUrl (or PARLEY_DATABASE_URL) to the address that you gave, ${look}`;
}

/** Names what was in the source and is no part of a store. */
function leftOutLines({ leftOut = [] }: StoreMove): string[] {
  if (leftOut.length === 0) return [];
  return [`Left out, because this program did not make it: ${leftOut.join(", ")}.`];
}

export async function migrateStore(
  cli: Cli,
  _args: readonly string[],
  options: { readonly to: string },
): Promise<number> {
  const move: Move<StoreMove> = ({ store }, watch) => cli.parts.store.migrate(store, options.to, watch);
  return make(cli, move, (moved, settings) => {
    const { from, to, tally } = moved;
    const left = unfinished(tally);
    return [
      `Copied ${inWords(tally)} from ${from} to ${to}.`,
      ...leftOutLines(moved),
      "The embedded store was left as it is. Start no gateway on it any more: from here on the two go apart.",
      ...(left === undefined ? [] : [`A gateway that starts on the new one goes on with ${left}.`]),
      nextSteps(options.to, settings),
    ];
  });
}

export async function backupStore(cli: Cli, args: readonly string[]): Promise<number> {
  const [file = ""] = args;
  const move: Move<StoreMove> = ({ store }, watch) => cli.parts.store.backup(store, file, watch);
  return make(cli, move, ({ from, to, tally, bytes = 0 }) => [
    `Wrote ${inWords(tally)} from ${from} to ${to} (${size(bytes)}; only you may read it).`,
    `It holds everything that anybody said. Into an empty store it goes with: parley store restore ${to}`,
  ]);
}

export async function restoreStore(cli: Cli, args: readonly string[]): Promise<number> {
  const [file = ""] = args;
  const move: Move<StoreMove> = ({ store }, watch) => cli.parts.store.restore(store, file, watch);
  return make(cli, move, (moved) => {
    const { from, to, tally } = moved;
    const left = unfinished(tally);
    const again = "even if another gateway has done it since the backup";
    return [
      `Restored ${inWords(tally)} from ${from} to ${to}.`,
      ...leftOutLines(moved),
      ...(left === undefined ? [] : [`A gateway that starts on it goes on with ${left}, ${again}.`]),
      "Next: parley gateway",
    ];
  });
}

export async function recoverStore(cli: Cli): Promise<number> {
  const move: Move<StoreRecovery> = (settings, watch) => {
    const { mainKey, scope } = settings.session;
    const keys = { mainKey, scope, defaultAgentId: defaultAgent(settings).id };
    return cli.parts.store.recover(settings.store, keys, watch);
  };
  return make(cli, move, ({ to, kept, tally, incomplete, ...found }) => {
    const left = unfinished(tally);
    const { sessionsFromCopies: sessions, messagesFromCopies: messages, unreadLines } = found;
    return [
      `Rebuilt the store in ${to}: ${inWords(tally)}.`,
      `Only the JSONL copies had ${count(sessions, "session")} and ${count(messages, "message")} of these.`,
      ...(incomplete.length === 0 ? [] : [`Some rows are lost, of: ${incomplete.join(", ")}.`]),
      ...(unreadLines === 0 ? [] : [`${count(unreadLines, "line")} of the copies could not be read.`]),
      `The old files are in ${kept}.`,
      ...(left === undefined
        ? []
        : [`A gateway that starts on it goes on with ${left}, even if done before.`]),
      "Next: parley gateway",
    ];
  });
}
