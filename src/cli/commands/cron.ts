// Implements `parley cron`: adds, lists, changes, runs and removes scheduled jobs.

import type { CronJobRow, CronTurnRow } from "../../contract/methods/cron.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { readDuration } from "../../core/duration.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import type { JobConversation, MissedPolicy } from "../../core/shapes/schedule.ts";
import { quoted } from "../../core/text/cut.ts";
import { nearestNames } from "../../core/text/nearest.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { readDate } from "../dates.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { age, count, excerpt, table } from "../layout.ts";
import { findOrName } from "../session-name.ts";

const ERROR_CHARS_MAX = 60;
const MESSAGE_CHARS_MAX = 40;

type JobParams = ParamsOf<"cron.add">;

/** The options of `cron add` and `cron update`. */
interface JobOptions {
  readonly cron?: string;
  readonly tz?: string;
  readonly every?: string;
  readonly at?: string;
  readonly in?: string;
  readonly name?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly message?: string;
  readonly deliver?: string | false;
  readonly channel?: string;
  readonly account?: string;
  readonly thread?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly timeout?: number;
  readonly missed?: MissedPolicy;
  readonly conversation?: JobConversation;
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly disabled?: boolean;
}

/** Formats a date and time in a time zone. Default: the time zone of this machine. */
function dateTime(atMs: number, timeZone?: string): string {
  const format = { dateStyle: "medium", timeStyle: "short" } as const;
  const zone = optional({ timeZone });
  return new Intl.DateTimeFormat("en-GB", { ...format, ...zone }).format(atMs);
}

function nextWords(job: CronJobRow): string {
  const { nextRunAtMs } = job.state;
  if (nextRunAtMs === undefined) return job.enabled ? "" : "off";
  if (job.schedule.kind !== "cron") return dateTime(nextRunAtMs);
  const { tz } = job.schedule;
  return `${dateTime(nextRunAtMs, tz)} ${tz}`;
}

function lastWords(turn: CronTurnRow | undefined, nowMs: number): string {
  if (turn === undefined) return "";
  const status = turn.status === "skipped" ? `skipped: ${turn.code ?? ""}` : turn.status;
  return `${status}, ${age(turn.firedAtMs, nowMs)} ago`;
}

function jobLines(cli: Cli, jobs: readonly CronJobRow[]): void {
  const nowMs = cli.parts.world.clock.now();
  const rows = jobs.map((job) => [
    job.id,
    job.name ?? (job.madeBy === undefined ? "" : excerpt(job.message, MESSAGE_CHARS_MAX)),
    job.words,
    nextWords(job),
    lastWords(job.state.last, nowMs),
    job.agentId,
    job.session ?? "",
    job.madeBy === undefined ? "" : `its agent, in ${job.madeBy}`,
  ]);
  const names = ["ID", "NAME", "SCHEDULE", "NEXT", "LAST", "AGENT", "CONVERSATION", "MADE BY"];
  for (const line of table(names, rows)) cli.line(line);
  for (const { id, name = id, problem } of jobs) {
    if (problem === undefined) continue;
    const fix = `Configure that agent, or remove the job: npx parley-gateway cron remove ${id}`;
    cli.note(safeLine(`warning: each turn of ${JSON.stringify(name)} fails: ${problem}. ${fix}`));
  }
}

export async function listJobs(
  cli: Cli,
  _args: readonly string[],
  options: { readonly limit: number },
): Promise<number> {
  return withLink(cli, async (link) => {
    const page = await link.request("cron.list", { limit: options.limit });
    if (!page.ok) return cli.fail(page);
    const { jobs, note, nextCursor } = page.value;
    if (note !== undefined) cli.note(safeLine(note));
    if (jobs.length === 0) cli.line("No scheduled jobs. Add one: npx parley-gateway cron add");
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
  const jobs: CronJobRow[] = [];
  let cursor: string | undefined;
  do {
    const wanted = { limit: PAGE_JOBS, ...optional({ cursor }) };
    const page: Reply<PayloadOf<"cron.list">> = await link.request("cron.list", wanted);
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
  const hint = "List ids and names: npx parley-gateway cron list";
  return {
    ok: false,
    code: "NOT_FOUND",
    error: `No job has the id or name ${named}.${nearest.join("")}`,
    hint,
  };
}

/** Calls `work` with the id of the job that the first argument names. */
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

type ScheduleResult =
  | { readonly ok: true; readonly value: JobParams["schedule"] | undefined }
  | { readonly ok: false; readonly error: string };

/** Returns the schedule that the options describe, or undefined if they describe none. */
function scheduleOf(options: JobOptions, nowMs: number): ScheduleResult {
  const named = (["cron", "every", "at", "in"] as const).filter((name) => options[name] !== undefined);
  const [kind, second] = named;
  if (second !== undefined) return { ok: false, error: `use only one of --${named.join(", --")}` };
  if (options.tz !== undefined && kind !== "cron") return { ok: false, error: "--tz requires --cron" };
  const text = kind === undefined ? "" : (options[kind] ?? "");
  switch (kind) {
    case undefined:
      return { ok: true, value: undefined };
    case "cron": {
      return { ok: true, value: { kind, expr: text, ...optional({ tz: options.tz }) } };
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

/** Channels whose places are sessions. */
const OF_SESSIONS: readonly string[] = ["webchat", "last"];

/** Returns the chat or session to which the options send the replies. */
async function deliveryOf(cli: Cli, link: Link, options: JobOptions): Promise<Reply<JobParams["deliver"]>> {
  const { deliver, channel = "webchat", account, thread } = options;
  if (typeof deliver !== "string") return ok(undefined);
  const to = OF_SESSIONS.includes(channel) ? await findOrName(cli, link, deliver) : ok({ key: deliver });
  if (!to.ok) return to;
  return ok({
    to: to.value.key,
    ...optional({ channel: options.channel, accountId: account, threadId: thread }),
  });
}

async function show(
  cli: Cli,
  answer: Reply<PayloadOf<"cron.add" | "cron.update">>,
  done: string,
): Promise<number> {
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
  const { name, agent, model, thinking, timeout, missed, conversation } = options;
  const params = {
    schedule: schedule.value,
    message: args[0] ?? "",
    ...optional({ name, agentId: agent, model, thinking, timeoutSeconds: timeout, missed }),
    ...optional({ session: conversation }),
    ...(options.disabled === true ? { enabled: false } : {}),
  };
  return withLink(cli, async (link) => {
    const to = await deliveryOf(cli, link, options);
    if (!to.ok) return cli.fail(to);
    const { session } = options;
    const where = session === undefined ? ok(undefined) : await findOrName(cli, link, session);
    if (!where.ok) return cli.fail(where);
    const job = { ...params, ...optional({ deliver: to.value, sessionKey: where.value?.key }) };
    return show(cli, await link.request("cron.add", job), "scheduled");
  });
}

/** Converts an empty value to null, which removes the setting. */
const cleared = (value: string | undefined): string | null | undefined => (value === "" ? null : value);

export async function updateJob(cli: Cli, args: readonly string[], options: JobOptions): Promise<number> {
  const schedule = scheduleOf(options, cli.parts.world.clock.now());
  if (!schedule.ok) return cli.fail({ code: "usage", error: schedule.error }, EXIT.usage);
  const { name, message, model, thinking, timeout, missed, conversation } = options;
  const patch = {
    ...optional({ schedule: schedule.value, message, timeoutSeconds: timeout, missed }),
    ...optional({ session: conversation }),
    ...optional({ name: cleared(name), model: cleared(model), thinking: cleared(thinking) }),
    ...(options.deliver === false ? { deliver: null } : {}),
    ...(options.enable === true ? { enabled: true } : {}),
    ...(options.disable === true ? { enabled: false } : {}),
  };
  if (Object.keys(patch).length === 0 && options.deliver === undefined) {
    return cli.fail(
      {
        code: "usage",
        error: "nothing to change: give at least one option; see npx parley-gateway cron update --help",
      },
      EXIT.usage,
    );
  }
  return withJob(cli, args, async (link, id) => {
    const to = await deliveryOf(cli, link, options);
    if (!to.ok) return cli.fail(to);
    const params = { id, patch: { ...patch, ...optional({ deliver: to.value }) } };
    return show(cli, await link.request("cron.update", params), "changed");
  });
}

export async function removeJob(cli: Cli, args: readonly string[]): Promise<number> {
  return withJob(cli, args, async (link, id) => {
    const answer = await link.request("cron.remove", { id });
    if (!answer.ok) return cli.fail(answer);
    cli.line(safeLine(`Removed ${id}. Its conversation was kept.`));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function runJob(cli: Cli, args: readonly string[]): Promise<number> {
  return withJob(cli, args, async (link, id) => {
    const answer = await link.request("cron.run", { id });
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
    const page = await link.request("cron.runs", { id, limit: options.limit });
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
