// Sessions, their runs, and what they used.

import { fail, ok } from "../../core/shapes/errors.ts";
import { INSTRUCTIONS_CHARS_MAX } from "../../core/shapes/session.ts";
import { totalUsage, USAGE_GROUPS, type UsageTotal } from "../../core/shapes/usage.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { readStdin } from "../files.ts";
import type { Link, Reply } from "../gateway-link.ts";
import { count } from "../layout.ts";
import { messageLines } from "../message-lines.ts";
import { refusal } from "../prompter.ts";
import {
  amount,
  asks,
  type Commands,
  choice,
  flag,
  limit,
  linked,
  option,
  program,
  withDefault,
} from "../row.ts";
import {
  findConversation,
  findSession,
  namedSession,
  readEarlier,
  readSessions,
  SESSION,
} from "../session-name.ts";

const EARLIER = "an earlier conversation, by its number or session id";
/** Maximum number of pages that are read for one list. */
const PAGES_MAX = 10;
/** Number of unfinished runs among which that of a session is looked for. */
const ACTIVE_MAX = 1_000;

const list = asks({
  summary: "List sessions, newest first",
  isDefault: true,
  options: {
    limit: limit(50),
    agent: option("<id>", "Show only this agent's sessions"),
    search: option("<text>", "Search labels, names, keys and first words"),
    archived: flag("Include archived sessions"),
  },
  ask: (link, { limit: rows, agent: agentId, search, archived: includeArchived }) =>
    readSessions(link, { agentId, search, includeArchived }, { rows, pages: PAGES_MAX }),
  print(cli, { sessions, nextCursor }, _, { limit: rows }) {
    cli.table(
      sessions,
      {
        KEY: ({ key }) => key,
        KIND: ({ sessionKind }) => sessionKind,
        STATE({ archivedAt, failure, state, hold, queuedRuns }) {
          const shown =
            archivedAt !== undefined
              ? "archived"
              : failure !== undefined
                ? "failed"
                : hold === "held"
                  ? "held"
                  : state;
          return queuedRuns > 0 ? `${shown} +${queuedRuns}` : shown;
        },
        UPDATED: ({ updatedAt }) => cli.ago(updatedAt),
        TOKENS: ({ totalTokens }) => totalTokens || undefined,
        LABEL: ({ label }) => label,
      },
      nextCursor === undefined ? "No sessions found." : undefined,
    );
    if (nextCursor !== undefined && sessions.length < rows)
      cli.note("There may be more: not all sessions were searched. Narrow the search.");
    else if (nextCursor !== undefined)
      cli.note(`There are more than ${count(rows, "session")}. Use --limit or --search.`);
  },
});

const history = asks({
  summary: "Show the last messages of a session",
  args: SESSION,
  options: {
    limit: limit(50, "messages"),
    before: option("<id>", "Show only messages before this message id"),
    earlier: option("<conversation>", `Show ${EARLIER}`),
  },
  find: (link, { session, earlier: which }) => findConversation(link, session, which),
  ask: (link, { limit: most, before }, conversation) =>
    link.request("chat.history", { ...conversation, limit: Math.min(most, 1000), before }),
  print(cli, { messages, nextBefore }) {
    if (messages.length === 0) cli.line("No messages yet.");
    for (const message of messages) for (const line of messageLines(cli, message)) cli.line(line);
    if (nextBefore !== undefined) cli.note(`Earlier messages: --before ${safeLine(nextBefore)}`);
  },
});

const earlier = asks({
  summary: "List the earlier conversations of a session (each reset ends one)",
  args: SESSION,
  find: namedSession,
  ask: (link, _, key) => readEarlier(link, key),
  print(cli, { conversations }, key) {
    cli.table(
      conversations,
      {
        NO: (_, at) => at + 1,
        STARTED: ({ startedAt }) => cli.ago(startedAt),
        ENDED: ({ endedAt }) => cli.ago(endedAt),
        MESSAGES: ({ messages }) => messages,
        "SESSION ID": ({ sessionId }) => sessionId,
        TITLE: ({ title }) => title,
      },
      "This session has no earlier conversations.",
    );
    if (conversations.length > 0)
      cli.note(`Show one: npx parley-gateway sessions history ${safeLine(key)} --earlier 1`);
  },
});

function fieldText(cli: Cli, name: string, value: unknown): string {
  if (name.endsWith("At") && typeof value === "number") {
    const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
    return `${format.format(value)} (${cli.ago(value)})`;
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const show = asks({
  summary: "Show the settings, state and usage of a session",
  args: SESSION,
  find: namedSession,
  async ask(link, _, key) {
    const filter = { keys: [key], includeArchived: true, includeGlobal: true };
    const page = await link.request("sessions.list", filter);
    if (!page.ok) return page;
    const [row] = page.value.sessions;
    return row === undefined
      ? fail("session_not_found", `The session ${key} was removed in the meantime.`)
      : ok(row);
  },
  print(cli, row) {
    const width = Math.max(...Object.keys(row).map((field) => field.length));
    for (const [field, value] of Object.entries(row))
      cli.line(`${cli.style("dim", field.padEnd(width))}  ${safeLine(fieldText(cli, field, value))}`);
  },
});

async function newestMessage(link: Link, sessionKey: string): Promise<Reply<string>> {
  const page = await link.request("chat.history", { sessionKey, limit: 1 });
  if (!page.ok) return page;
  const id = page.value.messages.at(-1)?.id;
  return id === undefined
    ? fail("message_not_found", `The session ${safeLine(sessionKey)} has no messages yet.`)
    : ok(id);
}

const fork = asks({
  summary: "Continue a conversation in a session of its own, from one of its messages",
  args: SESSION,
  options: {
    at: option("<message id>", "Share the messages up to this one (default: the newest)"),
    label: option("<label>", "Set the label of the new session"),
  },
  find: namedSession,
  async ask(link, { at, label }, sessionKey) {
    const message = at === undefined ? await newestMessage(link, sessionKey) : ok(at);
    return message.ok ? link.request("sessions.fork", { sessionKey, at: message.value, label }) : message;
  },
  print(cli, { key, leftBehind: { runs, jobs, waits } }) {
    cli.say(`Forked: ${key}`);
    const kept = [
      ...(runs > 0 ? [count(runs, "run")] : []),
      ...(jobs > 0 ? [count(jobs, "sub-agent job")] : []),
      ...(waits > 0 ? [count(waits, "wait")] : []),
    ];
    if (kept.length > 0) cli.note(`Not part of the fork: ${kept.join(", ")} of the original session.`);
    cli.note(`Continue it: npx parley-gateway chat --session ${safeLine(key)}`);
  },
});

const stop = asks({
  summary: "Stop the work of a session and of its sub-agents",
  args: SESSION,
  find: namedSession,
  ask: (link, _, sessionKey) => link.request("chat.abort", { sessionKey }),
  print: (cli, { runIds }, sessionKey) =>
    cli.say(
      runIds.length === 0
        ? `${sessionKey} has no work to stop.`
        : `Stopped ${count(runIds.length, "run")} of ${sessionKey} and its sub-agents.`,
    ),
});

const rename = asks({
  summary: "Set the label of a session",
  args: { ...SESSION, "[label]": "New label" },
  options: { clear: flag("Remove the label") },
  misuse: ({ label, clear = false }) =>
    (label !== undefined) === clear ? "give a new label, or --clear" : undefined,
  find: namedSession,
  ask: (link, { label = null }, key) => link.request("sessions.patch", { key, label }),
  print: (cli, _, key, { label }) =>
    cli.say(
      `${key} ${label === undefined ? "has no label now" : `is now called ${JSON.stringify(label.trim())}`}.`,
    ),
});

const EMPTY_INSTRUCTIONS = "the instructions are empty; --clear removes them";

const instructions = linked({
  summary: "Show a session's instructions for its model, or change them",
  args: { ...SESSION, "[text]": "New instructions; - reads them from standard input" },
  options: { clear: flag("Remove the instructions") },
  misuse: ({ text, clear }) => {
    if (text !== undefined && clear === true) return "give new instructions, or --clear";
    return text?.trim() === "" ? EMPTY_INSTRUCTIONS : undefined;
  },
  async work(cli, link, { session, text, clear }) {
    const found = await findSession(link, session);
    if (!found.ok) return cli.fail(found);
    const sessionKey = found.value;
    if (text === undefined && clear !== true) {
      const read = await link.request("chat.history", { sessionKey, limit: 1 });
      if (!read.ok) return cli.fail(read);
      const { instructions: known = null } = read.value;
      cli.line(safeText(known ?? `${sessionKey} has no instructions of its own.`));
      cli.document({ sessionKey, instructions: known });
      return EXIT.done;
    }
    const given = text === "-" ? await readStdin(cli.parts, INSTRUCTIONS_CHARS_MAX) : (text ?? null);
    if (given?.trim() === "") return cli.misuse(EMPTY_INSTRUCTIONS);
    const changed = await link.request("sessions.patch", { key: sessionKey, instructions: given });
    if (!changed.ok) return cli.fail(changed);
    const done =
      given === null ? "has no instructions of its own now" : "has new instructions, from its next run on";
    cli.say(`${sessionKey} ${done}.`);
    cli.document(changed.value);
    return EXIT.done;
  },
});

/** Returns the row of a command that archives a session or restores it. */
const archives = (archived: boolean, summary: string) =>
  asks({
    summary,
    args: SESSION,
    find: namedSession,
    ask: (link, _, key) => link.request("sessions.patch", { key, archived }),
    print: (cli, _, key) => cli.say(`${key} is ${archived ? "archived" : "restored"}.`),
  });

const reset = asks({
  summary: "Start a new transcript and keep the settings",
  args: SESSION,
  find: (link, { session }) => findSession(link, session, { whole: true }),
  ask: (link, _, key) => link.request("sessions.reset", { key }),
  print: (cli, { sessionId }, key) => cli.say(`Reset ${key}; its session id is now ${sessionId}.`),
});

const remove = linked({
  summary: "Stop a session's work, and delete the session with its transcript",
  args: SESSION,
  options: {
    keepTranscript: flag("Keep the messages in the store"),
    yes: flag("Delete without asking"),
  },
  async work(cli, link, { session, keepTranscript: kept = false, yes = false }) {
    const found = await findSession(link, session, { whole: yes });
    if (!found.ok) return cli.fail(found);
    const key = found.value;
    const refused = yes
      ? undefined
      : await refusal(
          cli,
          `Delete ${key}? This cannot be undone.`,
          "Deleting a session",
          "Nothing was deleted.",
        );
    if (refused !== undefined) return refused;
    const deleted = await link.request("sessions.delete", { key, deleteTranscript: !kept });
    if (!deleted.ok) return cli.fail(deleted);
    cli.say(`Deleted ${key}${kept ? "; its messages were kept" : ""}.`);
    cli.document(deleted.value);
    return EXIT.done;
  },
});

/** Returns the id of the run that holds the lane of a session. */
async function currentRun(link: Link, sessionKey: string): Promise<Reply<{ readonly runId: string }>> {
  const active = await link.request("runs.list", { limit: ACTIVE_MAX });
  if (!active.ok) return active;
  const run = active.value.runs.find((one) => one.sessionKey === sessionKey && one.state !== "queued");
  return run === undefined ? fail("run_not_found", `${sessionKey} has no run at work`) : ok(run);
}

const hold = asks({
  summary: "Let the run of a session stop before its next tool call",
  args: SESSION,
  find: namedSession,
  async ask(link, _, sessionKey) {
    const run = await currentRun(link, sessionKey);
    return run.ok ? link.request("runs.hold", { runId: run.value.runId }) : run;
  },
  print: (cli, _, sessionKey) =>
    cli.say(`Holding ${sessionKey}. To continue: npx parley-gateway sessions release ${sessionKey}`),
});

const release = asks({
  summary: "Let the held run of a session continue",
  args: SESSION,
  options: { skip: flag("Do not make the calls before which it stopped") },
  find: namedSession,
  async ask(link, { skip }, sessionKey) {
    const run = await currentRun(link, sessionKey);
    return run.ok ? link.request("runs.release", { runId: run.value.runId, skip }) : run;
  },
  print: (cli, _, sessionKey) => cli.say(`Released ${sessionKey}.`),
});

export const SESSIONS: Commands = {
  list,
  tree: program({
    summary: "Show the tree of spawned sessions",
    args: { "[session]": "Start at this session" },
    options: { archived: flag("Include archived sessions") },
    load: async () => (await import("../commands/sessions/tree.ts")).showTree,
  }),
  history,
  earlier,
  export: program({
    summary: "Print a whole conversation as JSON lines or Markdown",
    args: SESSION,
    options: {
      earlier: option("<conversation>", `Export ${EARLIER}`),
      format: withDefault(choice("<format>", "Use this format", ["jsonl", "markdown"]), "jsonl"),
      output: option("<file>", "Write to this new file instead of standard output"),
    },
    load: async () => (await import("../commands/sessions/export.ts")).exportSession,
  }),
  show,
  fork,
  stop,
  hold,
  release,
  rename,
  instructions,
  archive: archives(true, "Hide an idle session from agents and lists, and make it read-only"),
  restore: archives(false, "Restore an archived session"),
  reset,
  delete: remove,
};

const RUN = { "<run>": "Id that npx parley-gateway inbox prints" };

export const RUNS: Commands = {
  retry: asks({
    summary: "Send the message of a failed run again",
    args: RUN,
    ask: (link, { run: runId }) => link.request("runs.retry", { runId }),
    print: (cli, { runId }) => cli.say(`Retried as run ${runId}.`),
  }),
  dismiss: asks({
    summary: "Dismiss a failed run or a question",
    args: RUN,
    ask: (link, { run: runId }) => link.request("runs.dismiss", { runId }),
    print: (cli) => cli.line("Dismissed."),
  }),
};

const number = (value: number): string => Math.round(value).toLocaleString("en-US");
/** Four decimals, because a single run may cost less than a cent. */
const usd = (value: number): string => value.toFixed(4);

/** Returns the reason for an empty list. A removed agent may still have usage. */
async function nothingUsed(link: Link, agent: string | undefined, days: number): Promise<string> {
  const answer = agent === undefined ? undefined : await link.request("agents.list", {});
  const ids = answer?.ok === true ? answer.value.agents.map(({ id }) => id) : undefined;
  if (agent === undefined || ids === undefined || ids.includes(agent.trim().toLowerCase()))
    return `(no usage in ${days} days)`;
  const there = `no agent ${quoted(agent, 64)} is configured; agents: ${ids.join(", ")}`;
  return `(no usage in ${days} days: ${there})`;
}

export const USAGE = linked({
  summary: "Show tokens and cost",
  options: {
    by: withDefault(choice("<group>", "Group the usage by this", USAGE_GROUPS), "agent"),
    days: withDefault(amount("<n>", "Count this many days, including today (UTC)", 1), 30),
    agent: option("<id>", "Count only this agent"),
    limit: limit(100, "lines"),
  },
  async work(cli, link, { by, days, agent, limit: most }) {
    const answer = await link.request("usage", { by, days, limit: most, agentId: agent });
    if (!answer.ok) return cli.fail(answer);
    const { lines, truncated, budgets } = answer.value;
    if (lines.length === 0) cli.line(cli.style("dim", safeLine(await nothingUsed(link, agent, days))));
    else
      cli.table<UsageTotal & { readonly name: string }>(
        [...lines, { ...totalUsage(lines), name: truncated ? "shown" : "all" }],
        {
          [by.toUpperCase()]: ({ name }) => name,
          RUNS: ({ runs }) => number(runs),
          INPUT: ({ input }) => number(input),
          CACHED: ({ cacheRead, cacheWrite }) => number(cacheRead + cacheWrite),
          OUTPUT: ({ output }) => number(output),
          TOKENS: ({ totalTokens }) => number(totalTokens),
          USD: ({ cost }) => usd(cost),
        },
      );
    if (truncated) cli.note(`There are more than ${most} lines. Show more with --limit.`);
    for (const { agentId, dailyTokens, dailyCost, tokensToday, costToday } of budgets) {
      const parts = [
        dailyTokens === undefined ? [] : `${number(tokensToday)} of ${number(dailyTokens)} tokens`,
        dailyCost === undefined ? [] : `${usd(costToday)} of ${usd(dailyCost)} USD`,
      ];
      cli.say(`${agentId} today: ${parts.flat().join(", ")}`);
    }
    cli.document(answer.value);
    return EXIT.done;
  },
});
