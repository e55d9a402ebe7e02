// Implements `parley cron`: adds, lists, changes, runs and removes scheduled jobs.

import { quoted } from "../../core/text/cut.ts";
import { nearestNames } from "../../core/text/nearest.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { readDate, readDuration } from "../durations.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { age, count, excerpt, table } from "../layout.ts";

const ERROR_CHARS_MAX = 60;

interface Turn {
  readonly cause: string;
  readonly dueAtMs?: number;
  readonly firedAtMs: number;
  readonly status: string;
  readonly code?: string;
  readonly error?: string;
  readonly runId?: string;
  readonly durationMs?: number;
  readonly totalTokens?: number;
  readonly delivery?: string;
}

interface Job {
  readonly id: string;
  readonly key: string;
  readonly name?: string;
  readonly enabled: boolean;
  readonly schedule: { readonly kind: string; readonly tz?: string };
  readonly words: string;
  readonly agentId: string;
  readonly problem?: string;
  readonly state: { readonly nextRunAtMs?: number; readonly last?: Turn };
}

interface Page {
  readonly jobs: readonly Job[];
  readonly nextCursor?: string;
  readonly note?: string;
}

interface Answer {
  readonly job: Job;
  readonly note?: string;
}

/** The options of `cron add` and `cron update`. */
interface JobOptions {
  readonly cron?: string;
  readonly tz?: string;
  readonly every?: string;
  readonly at?: string;
  readonly in?: string;
  readonly name?: string;
  readonly agent?: string;
  readonly message?: string;
  readonly deliver?: string | false;
  readonly channel?: string;
  readonly account?: string;
  readonly thread?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly timeout?: number;
  readonly missed?: string;
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly disabled?: boolean;
}

/** A date and time in a time zone; default: the zone of this machine. */
function dateTime(atMs: number, timeZone?: string): string {
  const format = { dateStyle: "medium", timeStyle: "short" } as const;
  const zone = timeZone === undefined ? {} : { timeZone };
  return new Intl.DateTimeFormat("en-GB", { ...format, ...zone }).format(atMs);
}

function nextWords(job: Job): string {
  const { nextRunAtMs } = job.state;
  if (nextRunAtMs === undefined) return job.enabled ? "" : "off";
  const { tz } = job.schedule;
  return tz === undefined ? dateTime(nextRunAtMs) : `${dateTime(nextRunAtMs, tz)} ${tz}`;
}

function lastWords(turn: Turn | undefined, nowMs: number): string {
  if (turn === undefined) return "";
  const status = turn.status === "skipped" ? `skipped: ${turn.code ?? ""}` : turn.status;
  return `${status}, ${age(turn.firedAtMs, nowMs)} ago`;
}

function jobLines(cli: Cli, jobs: readonly Job[]): void {
  const nowMs = cli.parts.world.clock.now();
  const rows = jobs.map((job) => [
    job.id,
    job.name ?? "",
    job.words,
    nextWords(job),
    lastWords(job.state.last, nowMs),
    job.agentId,
  ]);
  for (const line of table(["ID", "NAME", "SCHEDULE", "NEXT", "LAST", "AGENT"], rows)) cli.line(line);
  for (const { id, name = id, problem } of jobs) {
    if (problem === undefined) continue;
    const fix = `Configure that agent, or remove the job: parley cron remove ${id}`;
    cli.note(safeLine(`warning: each turn of ${JSON.stringify(name)} fails: ${problem}. ${fix}`));
  }
}

export async function listJobs(
  cli: Cli,
  _args: readonly string[],
  options: { readonly limit: number },
): Promise<number> {
  return withLink(cli, async (link) => {
    const page = await link.call<Page>("cron.list", { limit: options.limit });
    if (!page.ok) return cli.fail(page);
    const { jobs, note, nextCursor } = page.value;
    if (note !== undefined) cli.note(safeLine(note));
    if (jobs.length === 0) cli.line("No scheduled jobs. Add one: parley cron add");
    else jobLines(cli, jobs);
    if (nextCursor !== undefined)
      cli.note(`There are more than ${count(jobs.length, "job")}. Show more with --limit.`);
    cli.document(page.value);
    return EXIT.done;
  });
}

const PAGE_JOBS = 500;
const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Finds a job by its id, or by its name if only one job has that name. */
async function jobIn(link: Link, word: string): Promise<Reply<string>> {
  if (JOB_ID.test(word)) return { ok: true, value: word };
  const jobs: Job[] = [];
  let cursor: string | undefined;
  do {
    const more = cursor === undefined ? {} : { cursor };
    const page = await link.call<Page>("cron.list", { limit: PAGE_JOBS, ...more });
    if (!page.ok) return page;
    jobs.push(...page.value.jobs);
    cursor = page.value.nextCursor;
  } while (cursor !== undefined);
  const byId = jobs.find(({ id }) => id === word);
  const found = byId === undefined ? jobs.filter(({ name }) => name === word) : [byId];
  const [only] = found;
  if (only !== undefined && found.length === 1) return { ok: true, value: only.id };
  const named = quoted(word, 80);
  if (only !== undefined) {
    const ids = found.map(({ id }) => id).join(", ");
    const error = `${found.length} jobs have the name ${named}. Give an id: ${ids}`;
    return { ok: false, code: "INVALID_REQUEST", error };
  }
  const names = jobs.flatMap(({ name }) => name ?? []);
  const nearest = nearestNames(word, names, 1).map((name) => ` Did you mean ${JSON.stringify(name)}?`);
  const hint = "List ids and names: parley cron list";
  return {
    ok: false,
    code: "NOT_FOUND",
    error: `No job has the id or name ${named}.${nearest.join("")}`,
    hint,
  };
}

/** Runs `work` with the id of the job that the first argument names. */
async function withJob(
  cli: Cli,
  [word = ""]: readonly string[],
  work: (link: Link, id: string) => Promise<number>,
): Promise<number> {
  return withLink(cli, async (link) => {
    const found = await jobIn(link, word);
    return found.ok ? work(link, found.value) : cli.fail(found);
  });
}

type JobParams = Record<string, unknown>;
type ScheduleResult =
  | { readonly ok: true; readonly value: JobParams | undefined }
  | { readonly ok: false; readonly error: string };

/** Returns the schedule that the options name; undefined if none of them does. */
function scheduleOf(options: JobOptions, nowMs: number): ScheduleResult {
  const named = (["cron", "every", "at", "in"] as const).filter((name) => options[name] !== undefined);
  const [kind, second] = named;
  if (second !== undefined) return { ok: false, error: `use only one of --${named.join(", --")}` };
  if (options.tz !== undefined && kind !== "cron") return { ok: false, error: "--tz needs --cron" };
  const text = kind === undefined ? "" : (options[kind] ?? "");
  switch (kind) {
    case undefined:
      return { ok: true, value: undefined };
    case "cron": {
      const zone = options.tz === undefined ? {} : { tz: options.tz };
      return { ok: true, value: { kind: "cron", expr: text, ...zone } };
    }
    case "at": {
      const atMs = readDate(text);
      if (atMs !== undefined) return { ok: true, value: { kind: "at", atMs } };
      return {
        ok: false,
        error: `--at must be a date like 2027-03-01T09:00 or 2027-03-01T09:00Z, got "${text}"`,
      };
    }
    default: {
      const ms = readDuration(text);
      if (ms === undefined) {
        return { ok: false, error: `--${kind} must be a duration like 30s, 15m, 2h or 1d, got "${text}"` };
      }
      return { ok: true, value: kind === "every" ? { kind, everyMs: ms } : { kind: "at", atMs: nowMs + ms } };
    }
  }
}

const given = (name: string, value: unknown): JobParams => (value === undefined ? {} : { [name]: value });

/** Returns the params that `add` and `update` share, without the schedule. */
function sharedParams(options: JobOptions): JobParams {
  const { deliver, channel, account, thread, timeout, missed } = options;
  const where = {
    ...given("channel", channel),
    ...given("accountId", account),
    ...given("threadId", thread),
  };
  const place = typeof deliver === "string" ? { ...where, to: deliver } : undefined;
  return {
    ...given("message", options.message),
    ...given("deliver", deliver === false ? null : place),
    ...given("timeoutSeconds", timeout),
    ...given("missed", missed),
  };
}

async function send(cli: Cli, link: Link, method: string, params: JobParams, done: string): Promise<number> {
  const answer = await link.call<Answer>(method, params);
  if (!answer.ok) return cli.fail(answer);
  const { job, note } = answer.value;
  const next = nextWords(job);
  cli.line(safeLine(`${job.id} is ${done}: ${job.words}${next === "" ? "" : `; next: ${next}`}`));
  if (note !== undefined) cli.note(safeLine(note));
  cli.document(answer.value);
  return EXIT.done;
}

export async function addJob(cli: Cli, args: readonly string[], options: JobOptions): Promise<number> {
  const schedule = scheduleOf(options, cli.parts.world.clock.now());
  if (!schedule.ok) return cli.fail({ code: "usage", error: schedule.error }, EXIT.usage);
  if (schedule.value === undefined) {
    const error = "the job has no schedule: give one of --cron, --every, --at, --in";
    return cli.fail({ code: "usage", error }, EXIT.usage);
  }
  const params = {
    schedule: schedule.value,
    ...sharedParams({ ...options, message: args[0] ?? "" }),
    ...given("name", options.name),
    ...given("agentId", options.agent),
    ...given("model", options.model),
    ...given("thinking", options.thinking),
    ...(options.disabled === true ? { enabled: false } : {}),
  };
  return withLink(cli, (link) => send(cli, link, "cron.add", params, "scheduled"));
}

/** Returns the param, or null (removes the setting) for an empty value. */
const cleared = (name: string, value: string | undefined): JobParams =>
  given(name, value === "" ? null : value);

export async function updateJob(cli: Cli, args: readonly string[], options: JobOptions): Promise<number> {
  const schedule = scheduleOf(options, cli.parts.world.clock.now());
  if (!schedule.ok) return cli.fail({ code: "usage", error: schedule.error }, EXIT.usage);
  const patch = {
    ...given("schedule", schedule.value),
    ...sharedParams(options),
    ...cleared("name", options.name),
    ...cleared("model", options.model),
    ...cleared("thinking", options.thinking),
    ...(options.enable === true ? { enabled: true } : {}),
    ...(options.disable === true ? { enabled: false } : {}),
  };
  if (Object.keys(patch).length === 0) {
    return cli.fail(
      { code: "usage", error: "no change is given; see parley cron update --help" },
      EXIT.usage,
    );
  }
  return withJob(cli, args, (link, id) => send(cli, link, "cron.update", { id, patch }, "changed"));
}

export async function removeJob(cli: Cli, args: readonly string[]): Promise<number> {
  return withJob(cli, args, async (link, id) => {
    const answer = await link.call("cron.remove", { id });
    if (!answer.ok) return cli.fail(answer);
    cli.line(safeLine(`Removed ${id}. Its session cron:${id} stays.`));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function runJob(cli: Cli, args: readonly string[]): Promise<number> {
  return withJob(cli, args, async (link, id) => {
    const answer = await link.call<{ runId: string; sessionKey: string }>("cron.run", { id });
    if (!answer.ok) return cli.fail(answer);
    const { runId, sessionKey } = answer.value;
    cli.line(safeLine(`${id} runs now in ${sessionKey} (run ${runId}).`));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function showRuns(
  cli: Cli,
  args: readonly string[],
  options: { readonly limit: number },
): Promise<number> {
  return withJob(cli, args, async (link, id) => {
    const page = await link.call<{ entries: readonly Turn[] }>("cron.runs", { id, limit: options.limit });
    if (!page.ok) return cli.fail(page);
    const rows = page.value.entries.map((turn) => [
      dateTime(turn.firedAtMs),
      turn.cause,
      turn.status === "skipped" ? `skipped (${turn.code ?? ""})` : turn.status,
      turn.durationMs === undefined ? "" : `${Math.round(turn.durationMs / 100) / 10} s`,
      turn.totalTokens === undefined ? "" : String(turn.totalTokens),
      turn.delivery ?? "",
      excerpt(turn.error ?? "", ERROR_CHARS_MAX),
    ]);
    if (rows.length === 0) cli.line("This job has not run yet.");
    const names = ["WHEN", "CAUSE", "RESULT", "TOOK", "TOKENS", "DELIVERY", "ERROR"];
    if (rows.length > 0) for (const line of table(names, rows)) cli.line(line);
    cli.document(page.value);
    return EXIT.done;
  });
}
