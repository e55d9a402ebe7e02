// Writes the offline model's sentences about tool results, answers and announcements. Its functions are pure.

import { isObject, jsonOf } from "../../core/json.ts";
import { resultWords } from "../../core/result-words.ts";
import { cut } from "../../core/text/cut.ts";
import type { NamedSession } from "./sentences.ts";

export type ToolJson = Readonly<Record<string, unknown>>;

const SHORT_CHARS_MAX = 160;
const RAW_CHARS_MAX = 1_500;
const ROWS_MAX = 20;

/** Returns a text as one line, cut so that it fits into a sentence. */
function short(text: string): string {
  return cut(text.trim().replace(/\s+/g, " "), SHORT_CHARS_MAX);
}

function str(json: ToolJson, name: string): string | undefined {
  const value = json[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function rows(json: ToolJson, name: string): ToolJson[] {
  const value = json[name];
  return Array.isArray(value)
    ? value.filter((one): one is ToolJson => typeof one === "object" && one !== null)
    : [];
}

export function isFailure(json: ToolJson): boolean {
  return json.status === "error" || json.status === "forbidden";
}

/** Parses a tool result as a JSON object; a plain text is returned as `text`. */
export function readResult(text: string): ToolJson {
  const value = jsonOf(text);
  return isObject(value) ? value : { text };
}

/** Returns the key of the session with this label or name in a `sessions_list` result. */
export function keyLabelled(json: ToolJson, name: string): string | undefined {
  const wanted = name.toLowerCase();
  const row = rows(json, "sessions").find((one) =>
    [str(one, "label"), str(one, "displayName")].some((label) => label?.toLowerCase() === wanted),
  );
  return row === undefined ? undefined : str(row, "key");
}

/** Describes a tool's answer in a sentence. `about`: the session that the person's sentence named. */
export function phrase(tool: string, json: ToolJson, about?: NamedSession): string {
  const name = about?.name ?? "it";
  if (tool === "sessions_send") return phraseSend(json, name);
  if (isFailure(json)) return phraseFailure(`I could not use ${tool}`, json);
  switch (tool) {
    case "sessions_list":
      return phraseList("session", rows(json, "sessions"), (row) => {
        const label = str(row, "label") ?? str(row, "displayName");
        const facts = [label, str(row, "kind"), str(row, "state")].filter((fact) => fact !== undefined);
        return `${str(row, "key")}${suffix(facts.join(", "))}`;
      });
    case "agents_list":
      return phraseList(
        "agent",
        rows(json, "agents"),
        (row) => `${str(row, "id")}${row.self === true ? " (myself)" : ""}${suffix(str(row, "model"))}`,
      );
    case "sessions_history": {
      const lines = rows(json, "messages").map((message) => {
        const texts = rows(message, "content").flatMap((block) => str(block, "text") ?? []);
        return `${str(message, "role")}: ${short(texts.join(" "))}`;
      });
      if (lines.length === 0) return `${name} has no messages yet.`;
      return [`The last ${count(lines.length, "message")} of ${name}:`, ...lines].join("\n");
    }
    case "sessions_search":
      return phraseList(
        "hit",
        rows(json, "hits"),
        (row) => `${str(row, "sessionKey")}: ${short(str(row, "excerpt") ?? "")}`,
      );
    case "send_file":
      return `Sent ${str(json, "name")}.`;
    case "sessions_spawn":
      return `Started a sub-agent: ${str(json, "childSessionKey") ?? "accepted"}.`;
    case "subagents": {
      if (Array.isArray(json.cancelled)) {
        const cancelled = json.cancelled.length;
        return cancelled === 0 ? "No sub-agent was at work." : `Cancelled ${count(cancelled, "sub-agent")}.`;
      }
      return phraseList("sub-agent", rows(json, "subagents"), (row) => {
        const state = row.finished === true ? `finished, ${str(row, "ended") ?? "done"}` : str(row, "state");
        const facts = [str(row, "label"), state].filter((fact) => fact !== undefined);
        return `${str(row, "sessionKey")}${suffix(facts.join(", "))}: ${short(str(row, "task") ?? "")}`;
      });
    }
    case "cron":
      return phraseReminders(json);
    default:
      return raw(json);
  }
}

function phraseFailure(what: string, json: ToolJson): string {
  const hint = str(json, "hint");
  const code = str(json, "code");
  const error = str(json, "error") ?? "no reason given";
  return `${what}${code === undefined ? "" : ` (${code})`}: ${error}${hint === undefined ? "" : `\n${hint}`}`;
}

function phraseSend(json: ToolJson, name: string): string {
  const runId = str(json, "runId");
  switch (json.status) {
    case "ok":
      return str(json, "reply") === undefined
        ? `${name} finished and had nothing to say.`
        : `${name} answered: ${str(json, "reply")}`;
    case "accepted":
      return `Sent to ${name}; I am not waiting for an answer (run ${runId}).`;
    case "timeout":
      return `${name} has not answered yet: ${str(json, "error")} (run ${runId}, ${str(json, "state")}).`;
    case "forbidden":
      return phraseFailure(`I could not send to ${name}, it was refused`, json);
    case "error":
      return phraseFailure(`I could not get an answer from ${name}`, json);
    default:
      return raw(json);
  }
}

function phraseReminders(json: ToolJson): string {
  const row = (job: ToolJson): string => `${str(job, "schedule")}, next run: ${str(job, "next") ?? "never"}`;
  if (isObject(json.job)) return `I made a reminder: ${row(json.job)}.`;
  const removed = str(json, "removed");
  if (removed !== undefined) return `Removed the reminder ${removed}.`;
  return phraseList("reminder", rows(json, "jobs"), (job) => `${str(job, "id")}${suffix(row(job))}`);
}

/** Describes how many jobs were started, and why others were not. Each reason is given once. */
export function phraseJobs(results: readonly ToolJson[]): string {
  const refused = results.filter(isFailure);
  const started = `Started ${count(results.length - refused.length, "sub-agent")}.`;
  const reasons = new Set(refused.map((json) => phraseFailure("Not started", json)));
  return refused.length === 0
    ? started
    : [`${started} ${refused.length} could not be started:`, ...reasons].join("\n");
}

/** Describes a sub-agent's announcement in one sentence. */
export function phraseAnnounced(text: string): string {
  const status = /^Status: (\w+)$/m.exec(text)?.[1] ?? "unknown";
  const result = /^Result:([\s\S]*?)^Notes:/m.exec(text)?.[1] ?? text;
  return `A sub-agent has finished (${status}): ${short(result)}`;
}

function phraseList(what: string, all: readonly ToolJson[], line: (row: ToolJson) => string): string {
  if (all.length === 0) return `I see no ${what}.`;
  const shown = all.slice(0, ROWS_MAX).map((row) => `- ${line(row)}`);
  const rest = all.length > ROWS_MAX ? [`and ${all.length - ROWS_MAX} more`] : [];
  return [`I see ${count(all.length, what)}:`, ...shown, ...rest].join("\n");
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function suffix(text: string | undefined): string {
  return text === undefined || text === "" ? "" : ` (${text})`;
}

function raw(json: ToolJson): string {
  return cut(resultWords(json), RAW_CHARS_MAX);
}

const GREETING = /^(?:hi|hello|hey|ping|good (?:morning|evening|day)|thanks?|thank you|ok|okay)\b/i;

/** Returns whether a text is small talk, which needs no further step. */
export function isSmallTalk(text: string): boolean {
  return GREETING.test(text.trim()) && text.trim().length < 40;
}

const REPORTED =
  /^(?:I could not|I see|I have no|Sent to|Started |A sub-agent |\S+ (?:answered|has not answered|finished))/;

/** Returns whether a text reports a result or a failure, which needs no discussion. */
export function isReport(text: string): boolean {
  return text.trim().length < 40 || REPORTED.test(text.trim());
}

/** Matches a calculation that is not part of a date, an id or a path. */
const SUM = /(?<![\w./-])(-?\d+(?:\.\d+)?)\s*([+\-*/x×])\s*(-?\d+(?:\.\d+)?)(?![\w/-])/;

export function calculated(question: string): string | undefined {
  const found = SUM.exec(question);
  if (found === null) return undefined;
  const [left, right] = [Number(found[1]), Number(found[3])];
  const sign = found[2] ?? "+";
  const value =
    sign === "+" ? left + right : sign === "-" ? left - right : sign === "/" ? left / right : left * right;
  return `${left} ${sign} ${right} = ${Number.isFinite(value) ? Number(value.toFixed(6)) : "undefined"}`;
}

const RECIPES = [
  "say first what a good outcome looks like, then test the assumption that would hurt most if it were wrong.",
  "collect what is known, write down two or three options, and pick by what is hardest to undo later.",
  "look at the last time it went wrong, fix that cause first, and agree on one number that shows progress.",
];

/** Returns a short answer from a template: this model has no knowledge, and says so. */
export function opinion(question: string): string {
  // The last sentence counts as the question; the text before it is ignored.
  const last =
    question
      .trim()
      .split(/(?<=[.!?])\s+/)
      .at(-1) ?? "";
  const topic = short(last.replace(/(?<![?!.\s])[?!.\s]+$/, ""));
  const recipe = RECIPES[topic.length % RECIPES.length];
  return `On "${topic}" I would ${recipe} (I am the offline model: I know rules of thumb, not facts.)`;
}

export function followUp(): string {
  return "Thanks, that helps. What would you check first, and how would you notice that it went wrong?";
}

export function announcement(request: string, latestReply: string): string {
  return `Another session asked: "${short(request)}". The outcome: ${short(latestReply)}`;
}

/** Returns a list of the sentences that the offline model understands, given its tools. */
export function helpText(toolNames: readonly string[]): string {
  const can = (tool: string, sentence: string): string[] =>
    toolNames.includes(tool) ? [`- ${sentence}`] : [];
  return [
    "I am the offline rehearsal model: I need no key and no network, and I understand plain sentences. Try:",
    ...can("sessions_list", "list sessions"),
    ...can("agents_list", "list agents"),
    ...can("sessions_send", "ask research: what should we check before a release?"),
    ...can("sessions_send", "ask research within 5 seconds: wait 10 seconds, then say done"),
    ...can("sessions_send", "tell research the build is green"),
    ...can("sessions_history", "read research"),
    ...can("sessions_search", "search release"),
    ...can("session_status", "status"),
    ...can("read", "read file notes.txt"),
    ...can("send_file", "send file notes.txt"),
    ...can("write", "write file notes.txt: some text"),
    ...can("exec", "run: ls"),
    ...can("sessions_spawn", "spawn: wait 5 seconds, then say the files are counted"),
    ...can("sessions_spawn", "spawn 3 jobs: say part {n} is done"),
    ...can("cron", "remind me in 1 minute to stretch"),
    ...can("cron", "list reminders"),
    ...can("subagents", "list subagents"),
    ...can("subagents", "cancel subagents"),
    "- who are you",
    "- wait 3 seconds, then say done",
    "",
    "For real answers, configure a provider, or set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY.",
  ].join("\n");
}
