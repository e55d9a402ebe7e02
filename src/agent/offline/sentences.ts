// Parses the plain sentences that the offline model understands. The same sentence always has the same
// meaning. For an unknown sentence the result is undefined, not a guess.
// H2: parsing takes time linear in the text, also for hostile text.

/** A session in a sentence. `guessed`: a single word, which is looked up as an agent's name first. */
export interface NamedSession {
  readonly name: string;
  /** Absent for a quoted name, which is treated as a label. */
  readonly key?: string;
  readonly guessed: boolean;
}

export type Intent =
  /** One tool call without a session. */
  | { readonly kind: "tool"; readonly tool: string; readonly args: Readonly<Record<string, unknown>> }
  /** Sub-agents: one call for each, all in one message. */
  | { readonly kind: "jobs"; readonly jobs: readonly Readonly<Record<string, unknown>>[] }
  /** One tool call for each of the named sessions. */
  | {
      readonly kind: "session";
      readonly tool: "sessions_send" | "sessions_history" | "session_status";
      readonly targets: readonly NamedSession[];
      readonly args: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "wait"; readonly seconds: number; readonly next?: Intent }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "who" }
  | { readonly kind: "help" };

/** Maximum seconds of a wait, so that a typo doesn't block a lane for days. */
const WAIT_SECONDS_MAX = 3_600;
const ASK_SECONDS_DEFAULT = 30;
const HISTORY_LIMIT = 10;
/** Maximum number of sub-agents in one sentence. */
const JOBS_MAX = 50;
/** Maximum characters of a list of names; a longer text is not parsed as one. */
const NAMES_CHARS_MAX = 2_000;

const NAME = `"[^"]+"|[^\\s",]+`;
const NAMES = new RegExp(`^(?:${NAME})(?:(?:\\s*,\\s*|\\s+and\\s+)(?:${NAME}))*$`, "i");
const ONE_NAME = new RegExp(NAME, "g");

type SentenceParser = (found: RegExpExecArray, ownAgentId: string) => Intent | undefined;

const SENTENCES: readonly (readonly [RegExp, SentenceParser])[] = [
  [/^(?:help|what can you do)\W*$/i, () => ({ kind: "help" })],
  [/^who are you\W*$/i, () => ({ kind: "who" })],
  [/^say\s+([\s\S]+)$/i, (found) => ({ kind: "say", text: part(found, 1) })],
  [/^wait\s+([\d.]+)\s*(?:s|sec|seconds?)\b[\s,.;]*(?:(?:and\s+)?then\s+([\s\S]+))?$/i, readWait],
  [/^(?:list|show)\s+(?:the\s+|my\s+|all\s+)?sessions\W*$/i, () => tool("sessions_list", {})],
  [/^(?:list|show)\s+(?:the\s+|all\s+)?agents\W*$/i, () => tool("agents_list", {})],
  [/^search\s+(?:for\s+)?([\s\S]+)$/i, (found) => tool("sessions_search", { query: part(found, 1) })],
  [/^(?:status|how are you)\W*$/i, () => tool("session_status", {})],
  [/^status\s+(?:of\s+)?([\s\S]+)$/i, (found, own) => about("session_status", part(found, 1), {}, own)],
  [/^send\s+file\s+(\S+)$/i, (found) => tool("send_file", { path: part(found, 1) })],
  [/^read\s+file\s+(\S+)$/i, (found) => tool("read", { path: part(found, 1) })],
  [
    /^write\s+file\s+(\S+?):\s+([\s\S]+)$/i,
    (found) => tool("write", { path: part(found, 1), content: part(found, 2) }),
  ],
  [/^run:?\s+([\s\S]+)$/i, (found) => tool("exec", { command: part(found, 1) })],
  [
    /^spawn\s+(\d{1,9})(?:\s+([a-z0-9_-]{1,64}))?\s+jobs?:\s+([\s\S]+)$/i,
    (found) => readJobs(Number(found[1]), found[2], part(found, 3)),
  ],
  [
    /^spawn(?:\s+(?!in\b)([a-z0-9_-]{1,64}))?\s+in\s+a\s+thread:\s+([\s\S]+)$/i,
    (found) => tool("sessions_spawn", { task: part(found, 2), thread: true, ...agentNamed(found[1]) }),
  ],
  [
    /^spawn(?:\s+([a-z0-9_-]{1,64}))?:\s+([\s\S]+)$/i,
    (found) => tool("sessions_spawn", { task: part(found, 2), ...agentNamed(found[1]) }),
  ],
  [
    /^remind\s+me\s+(every\s+)?(\S.{0,60}?)\s+to\s+([\s\S]+)$/i,
    ([, every, when = "", what = ""]) => {
      const message = `say Reminder: ${what.trim()}`;
      return tool("cron", { action: "add", message, ...(every ? { every: when } : { at: when }) });
    },
  ],
  [
    /^(?:list|show)\s+(?:the\s+|my\s+|all\s+)*(?:reminders|jobs)\W*$/i,
    () => tool("cron", { action: "list" }),
  ],
  [/^remove\s+(?:reminder|job)\s+(\S+)$/i, (found) => tool("cron", { action: "remove", id: part(found, 1) })],
  [
    /^(list|show|cancel|stop)\s+(?:the\s+|my\s+|all\s+)*sub-?agents\W*$/i,
    (found) =>
      /^(?:list|show)$/i.test(part(found, 1))
        ? tool("subagents", { action: "list" })
        : tool("subagents", { action: "cancel", sessionKey: "all" }),
  ],
  [
    /^(?:read|history\s+of)\s+([\s\S]+)$/i,
    (found, own) => about("sessions_history", part(found, 1), { limit: HISTORY_LIMIT }, own),
  ],
  [
    new RegExp(
      "^(ask|tell|relay\\s+to|send\\s+to)\\s+(\\S.{0,999}?)" +
        "(?:\\s{1,20}within\\s{1,20}([\\d.]{1,20})\\s{0,20}s(?:ec|econds?)?)?\\s{0,20}:\\s+([\\s\\S]+)$",
      "i",
    ),
    (found, own) => readSend(part(found, 1), part(found, 2), part(found, 4), own, found[3]),
  ],
  [
    new RegExp(`^(ask|tell)\\s+(${NAME})\\s+([\\s\\S]+)$`, "i"),
    (found, own) => readSend(part(found, 1), part(found, 2), part(found, 3), own, undefined),
  ],
];

/** Parses one sentence that the agent `ownAgentId` has received. */
export function readSentence(text: string, ownAgentId: string): Intent | undefined {
  const sentence = text
    .trim()
    .replace(/^please\s+/i, "")
    .trim();
  for (const [pattern, read] of SENTENCES) {
    const found = pattern.exec(sentence);
    const intent = found === null ? undefined : read(found, ownAgentId);
    if (intent !== undefined) return intent;
  }
  return undefined;
}

function part(found: RegExpExecArray, at: number): string {
  return (found[at] ?? "").trim();
}

function tool(name: string, args: Record<string, unknown>): Intent {
  return { kind: "tool", tool: name, args };
}

function readWait(found: RegExpExecArray, ownAgentId: string): Intent | undefined {
  const seconds = Math.min(Number(found[1]), WAIT_SECONDS_MAX);
  if (!Number.isFinite(seconds)) return undefined;
  const rest = part(found, 2);
  if (rest === "") return { kind: "wait", seconds };
  const next = readSentence(rest, ownAgentId) ?? { kind: "say", text: rest };
  return { kind: "wait", seconds, next };
}

function agentNamed(name: string | undefined): { agentId?: string } {
  return name === undefined ? {} : { agentId: name.toLowerCase() };
}

/** Returns the jobs. The number of a job becomes its label, and replaces `{n}` in its task. */
function readJobs(count: number, agent: string | undefined, task: string): Intent {
  if (count < 1 || count > JOBS_MAX) {
    return { kind: "say", text: `I can start 1 to ${JOBS_MAX} sub-agents per message, not ${count}.` };
  }
  const jobs = Array.from({ length: count }, (_, at) => ({
    task: task.replaceAll("{n}", String(at + 1)),
    label: `job ${at + 1}`,
    ...agentNamed(agent),
  }));
  return { kind: "jobs", jobs };
}

function readSend(
  verb: string,
  names: string,
  message: string,
  ownAgentId: string,
  within: string | undefined,
): Intent | undefined {
  const targets = readNames(names, ownAgentId);
  const seconds = within === undefined ? ASK_SECONDS_DEFAULT : Number(within);
  if (targets === undefined || !Number.isFinite(seconds)) return undefined;
  const timeoutSeconds = /^tell$/i.test(verb) ? 0 : seconds;
  return { kind: "session", tool: "sessions_send", targets, args: { message, timeoutSeconds } };
}

function about(
  name: "sessions_history" | "session_status",
  names: string,
  args: Record<string, unknown>,
  ownAgentId: string,
): Intent | undefined {
  const targets = readNames(names, ownAgentId);
  return targets?.length === 1 ? { kind: "session", tool: name, targets, args } : undefined;
}

function readNames(text: string, ownAgentId: string): NamedSession[] | undefined {
  if (text.length > NAMES_CHARS_MAX) return undefined;
  const names = text.replace(/[?!.:]+$/, "");
  if (!NAMES.test(names)) return undefined;
  const found = (names.match(ONE_NAME) ?? []).filter((name) => !/^and$/i.test(name));
  return found.map((name) => readName(name, ownAgentId));
}

function readName(name: string, ownAgentId: string): NamedSession {
  const quoted = /^"(.*)"$/.exec(name);
  if (quoted !== null) return { name: quoted[1] ?? "", guessed: false };
  if (name.includes(":") || isUuid(name)) return { name, key: name, guessed: false };
  if (name.toLowerCase() === ownAgentId) return { name, key: "main", guessed: false };
  return /^[a-z0-9_-]{1,64}$/i.test(name)
    ? { name, key: `agent:${name.toLowerCase()}:main`, guessed: true }
    : { name, guessed: false };
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
