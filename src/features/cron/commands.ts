// Scheduled jobs.

import type { Cli } from "../../cli/cli.ts";
import type { Link, Reply } from "../../cli/gateway-link.ts";
import { count, excerpt } from "../../cli/layout.ts";
import { onlyMatch } from "../../cli/only-match.ts";
import { amount, asks, type Commands, choice, flag, type Input, limit, option } from "../../cli/row.ts";
import { routeOptions } from "../../cli/rows/channels.ts";
import { findOrName } from "../../cli/session-name.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { parseDate } from "../../core/date.ts";
import { readDuration } from "../../core/duration.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { CronJobRow, CronTurnRow } from "./contract.ts";
import { EVERY_MIN_MS, JOB_CONVERSATIONS, MISSED_POLICIES } from "./job.ts";

/**
 * Parses an ISO 8601 date or a Unix time in ms, and returns a Unix time in ms. A date without an offset is in
 * local time. Returns undefined if the text is invalid.
 */
export function readDate(text: string): number | undefined {
  if (/^\d{10,15}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(text))
    return undefined;
  // Add a time, because Date.parse would read a date without a time as UTC.
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00` : text.replace(" ", "T");
  const ms = parseDate(whole);
  return Number.isNaN(ms) ? undefined : ms;
}

const ERROR_CHARS_MAX = 60;
const MESSAGE_CHARS_MAX = 40;
const PAGE_JOBS = 500;
const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Channels whose places are sessions. */
const OF_SESSIONS: readonly string[] = ["webchat", "last"];

type JobParams = ParamsOf<"cron.add">;

/** Formats a date and time in a time zone, with its name. Default: the time zone of this machine. */
function dateTime(atMs: number, timeZone?: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    ...{ dateStyle: "medium", timeStyle: "short" },
    ...optional({ timeZone }),
  });
  return `${format.format(atMs)} ${timeZone ?? format.resolvedOptions().timeZone}`;
}

function nextWords({ state: { nextRunAtMs }, enabled, schedule }: CronJobRow): string {
  if (nextRunAtMs === undefined) return enabled ? "" : "off";
  return dateTime(nextRunAtMs, schedule.kind === "cron" ? schedule.tz : undefined);
}

function lastWords(cli: Cli, turn: CronTurnRow | undefined): string {
  if (turn === undefined) return "";
  const status = turn.status === "skipped" ? `skipped: ${turn.code ?? ""}` : turn.status;
  return `${status}, ${cli.ago(turn.firedAtMs)}`;
}

/** Finds a job by its id, or by its name if only one job has that name. */
async function findJob(link: Link, { job: word }: { readonly job: string }): Promise<Reply<string>> {
  if (JOB_ID.test(word)) return ok(word);
  const all: CronJobRow[] = [];
  let cursor: string | undefined;
  do {
    const page: Reply<PayloadOf<"cron.list">> = await link.request("cron.list", { limit: PAGE_JOBS, cursor });
    if (!page.ok) return page;
    all.push(...page.value.jobs);
    cursor = page.value.nextCursor;
  } while (cursor !== undefined);
  const byId = all.filter(({ id }) => id === word);
  const matches = byId.length > 0 ? byId : all.filter(({ name }) => name === word);
  const several = (ids: string) =>
    `${matches.length} jobs have the name ${quoted(word, 80)}. Give an id: ${ids}`;
  const match = onlyMatch(word, matches, { kind: "job", list: "cron list", all, several });
  return match.ok ? ok(match.value.id) : match;
}

const JOB = { "<job>": "Id or name of the job" };

/** The options that `add` and `update` share. */
const JOB_OPTIONS = {
  cron: option(
    "<expr>",
    'Run at these times: minute, hour, day of month, month, day of week, like "30 7 * * 1-5"',
  ),
  tz: option("<zone>", "Use this time zone for --cron, like Europe/Berlin (default: the gateway's)"),
  every: option("<duration>", "Run at this interval, like 30s, 15m, 2h or 1d"),
  at: option(
    "<date>",
    "Run once at this time, like 2027-03-01T09:00 (this machine's time zone) or 2027-03-01T09:00Z",
  ),
  in: option("<duration>", "Run once after this duration"),
  name: option("<name>", "Set the name of the job"),
  deliver: option("<place>", "Deliver replies to a session, such as main, or to a chat in --channel"),
  ...routeOptions("Deliver over this channel: webchat, last or a configured one (default: webchat)"),
  model: option("<model>", "Use this <provider>/<model> instead of the agent's"),
  thinking: option("<level>", "Use this thinking level instead of the agent's"),
  timeout: amount("<seconds>", "Stop a run after this duration (0: never)", 0),
  missed: choice(
    "<policy>",
    "After downtime, run the job once for all missed dates, or skip them",
    MISSED_POLICIES,
  ),
  conversation: choice(
    "<policy>",
    "Begin a new conversation in the job's session at each run, or keep one for all (default for a new " +
      "job: fresh with --deliver and without --session)",
    JOB_CONVERSATIONS,
  ),
};

type JobInput = Input<object, typeof JOB_OPTIONS>;

/** Returns the schedule that the options describe, or undefined if they describe none. */
function readSchedule(input: JobInput, nowMs: number): Result<JobParams["schedule"] | undefined> {
  const [kind, second, ...others] = (["cron", "every", "at", "in"] as const).filter(
    (name) => input[name] !== undefined,
  );
  const wrong = (error: string) => fail("invalid_argument", error);
  if (second !== undefined) return wrong(`use only one of --${[kind, second, ...others].join(", --")}`);
  if (input.tz !== undefined && kind !== "cron") return wrong("--tz requires --cron");
  if (kind === undefined) return ok(undefined);
  const text = input[kind] ?? "";
  if (kind === "cron") return ok({ kind, expr: text, ...optional({ tz: input.tz }) });
  if (kind === "at") {
    const atMs = readDate(text);
    if (atMs !== undefined && atMs <= nowMs) return wrong(`--at is in the past: "${text}"`);
    if (atMs !== undefined) return ok({ kind, atMs });
    return wrong(`--at must be a date like 2027-03-01T09:00 or 2027-03-01T09:00Z, got "${text}"`);
  }
  const ms = readDuration(text);
  if (ms === undefined) return wrong(`--${kind} must be a duration like 30s, 15m, 2h or 1d, got "${text}"`);
  if (kind === "every" && ms < EVERY_MIN_MS) return wrong(`--every must be at least 10s, got "${text}"`);
  if (ms === 0) return wrong("--in must be more than 0s");
  return ok(kind === "every" ? { kind, everyMs: ms } : { kind: "at", atMs: nowMs + ms });
}

/** Returns the chat or session to which the options send the replies. */
async function deliveryOf(cli: Cli, link: Link, input: JobInput): Promise<Reply<JobParams["deliver"]>> {
  const { deliver, channel, account, thread } = input;
  if (deliver === undefined) return ok(undefined);
  const isSession = OF_SESSIONS.includes(channel ?? "webchat");
  const to = isSession ? await findOrName(cli, link, deliver) : ok({ key: deliver });
  if (!to.ok) return to;
  return ok({ to: to.value.key, ...optional({ channel, accountId: account, threadId: thread }) });
}

/** Returns what `add` and `update` say about a job, without its schedule. An empty text becomes `empty`. */
const settingsIn = <E>({ name, model, thinking, timeout, missed, conversation }: JobInput, empty: E) => {
  const text = (given: string | undefined) => (given === "" ? empty : given);
  const texts = { name: text(name), model: text(model), thinking: text(thinking) };
  return optional({ ...texts, timeoutSeconds: timeout, missed, session: conversation });
};

function printJob(cli: Cli, { job, note }: PayloadOf<"cron.add" | "cron.update">, done: string): void {
  const next = nextWords(job);
  cli.say(`${job.id} is ${done}: ${job.words}${next === "" ? "" : `; next: ${next}`}`);
  if (note !== undefined) cli.note(safeLine(note));
}

const add = asks({
  summary: "Add a job",
  args: { "<message>": "Message to the agent" },
  options: {
    ...JOB_OPTIONS,
    agent: option("<id>", "Run the job as this agent (default: the default agent)"),
    session: option(
      "<session>",
      "Run the job in this session, such as main; /reset begins a new conversation there (default: its own)",
    ),
    disabled: flag("Add the job disabled"),
  },
  misuse(input) {
    const schedule = readSchedule(input, 0);
    if (!schedule.ok) return schedule.error;
    if (input.message.trim() === "") return "the message of the job is empty";
    return schedule.value === undefined
      ? "the job has no schedule: give one of --cron, --every, --at, --in"
      : undefined;
  },
  async find(link, input, cli) {
    const deliver = await deliveryOf(cli, link, input);
    if (!deliver.ok) return deliver;
    const { session } = input;
    const where = session === undefined ? ok(undefined) : await findOrName(cli, link, session);
    if (!where.ok) return where;
    const schedule = readSchedule(input, cli.parts.world.clock.now());
    return schedule.ok ? ok({ schedule, deliver: deliver.value, sessionKey: where.value?.key }) : schedule;
  },
  ask: (link, input, { schedule, ...places }) =>
    link.request("cron.add", {
      ...places,
      ...settingsIn(input, ""),
      schedule: schedule.value as JobParams["schedule"],
      message: input.message,
      agentId: input.agent,
      enabled: input.disabled === true ? false : undefined,
    }),
  print: (cli, answer) => printJob(cli, answer, "scheduled"),
});

const CHANGE_OPTIONS = {
  message: option("<text>", "Set the message to the agent"),
  noDeliver: flag("Do not deliver replies"),
  enable: flag("Enable the job"),
  disable: flag("Disable the job", { conflicts: "enable" }),
};

/** Returns the changes that the options of `update` make, without those for which the gateway is asked. */
const changesIn = (
  input: Input<object, typeof JOB_OPTIONS & typeof CHANGE_OPTIONS>,
  schedule: JobParams["schedule"] | undefined,
) => ({
  ...settingsIn(input, null),
  ...optional({ schedule, message: input.message, enabled: input.enable }),
  ...(input.disable === true ? { enabled: false } : {}),
  ...(input.noDeliver === true ? { deliver: null } : {}),
});

const update = asks({
  summary: "Change the given settings of a job",
  args: JOB,
  options: {
    ...JOB_OPTIONS,
    ...CHANGE_OPTIONS,
  },
  misuse(input) {
    const schedule = readSchedule(input, 0);
    if (!schedule.ok) return schedule.error;
    const isEmpty = input.deliver === undefined && Object.keys(changesIn(input, schedule.value)).length === 0;
    return isEmpty
      ? "nothing to change: give at least one option; see npx parley-gateway cron update --help"
      : undefined;
  },
  async find(link, input, cli) {
    const id = await findJob(link, input);
    if (!id.ok) return id;
    const deliver = await deliveryOf(cli, link, input);
    if (!deliver.ok) return deliver;
    const schedule = readSchedule(input, cli.parts.world.clock.now());
    if (!schedule.ok) return schedule;
    const patch = { ...changesIn(input, schedule.value), ...optional({ deliver: deliver.value }) };
    return ok({ id: id.value, patch });
  },
  ask: (link, _, params) => link.request("cron.update", params),
  print: (cli, answer) => printJob(cli, answer, "changed"),
});

const JOBS: Commands = {
  list: asks({
    summary: "List jobs, with the last and the next run of each",
    isDefault: true,
    options: { limit: limit(100) },
    ask: (link, { limit: most }) => link.request("cron.list", { limit: most }),
    print(cli, { jobs, note, nextCursor }) {
      if (note !== undefined) cli.note(safeLine(note));
      cli.table(
        jobs,
        {
          ID: ({ id }) => id,
          NAME: ({ name, madeBy, message }) =>
            name ?? (madeBy === undefined ? "" : excerpt(message, MESSAGE_CHARS_MAX)),
          SCHEDULE: ({ words }) => words,
          NEXT: nextWords,
          LAST: ({ state }) => lastWords(cli, state.last),
          AGENT: ({ agentId }) => agentId,
          CONVERSATION: ({ session }) => session,
          "MADE BY": ({ madeBy }) => (madeBy === undefined ? "" : `its agent, in ${madeBy}`),
        },
        "No scheduled jobs. Add one: npx parley-gateway cron add",
      );
      for (const { id, name = id, problem } of jobs) {
        if (problem === undefined) continue;
        const fix = `Configure that agent, or remove the job: npx parley-gateway cron remove ${id}`;
        cli.note(safeLine(`warning: each turn of ${JSON.stringify(name)} fails: ${problem}. ${fix}`));
      }
      if (nextCursor !== undefined)
        cli.note(`There are more than ${count(jobs.length, "job")}. Show more with --limit.`);
    },
  }),
  add,
  update,
  remove: asks({
    summary: "Remove a job and keep its session",
    args: JOB,
    find: findJob,
    ask: (link, _, id) => link.request("cron.remove", { id }),
    print: (cli, _, id) => cli.say(`Removed ${id}. Its conversation was kept.`),
  }),
  run: asks({
    summary: "Run a job now, in addition to its schedule",
    args: JOB,
    find: findJob,
    ask: (link, _, id) => link.request("cron.run", { id }),
    print: (cli, { runId, sessionKey }, id) => cli.say(`${id} runs now in ${sessionKey} (run ${runId}).`),
  }),
  runs: asks({
    summary: "List the past runs of a job",
    args: JOB,
    options: { limit: limit(50) },
    find: findJob,
    ask: (link, { limit: most }, id) => link.request("cron.runs", { id, limit: most }),
    print: (cli, { entries }) =>
      cli.table(
        entries,
        {
          WHEN: ({ firedAtMs }) => dateTime(firedAtMs),
          CAUSE: ({ cause }) => cause,
          RESULT: ({ status, code = "" }) => (status === "skipped" ? `skipped (${code})` : status),
          TOOK: ({ durationMs }) =>
            durationMs === undefined ? "" : `${Math.round(durationMs / 100) / 10} s`,
          TOKENS: ({ totalTokens }) => totalTokens,
          DELIVERY: ({ delivery }) => delivery,
          ERROR: ({ error = "" }) => excerpt(error, ERROR_CHARS_MAX),
        },
        "This job has not run yet.",
      ),
  }),
};

export const CRON: Commands = {
  cron: { summary: "Manage scheduled jobs: messages to agents at set times", commands: JOBS },
};
