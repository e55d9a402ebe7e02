// Checks values that agents and clients receive: results of tools, answers and events. They must not reveal
// hidden sessions or secrets (I9, I12, I14).

import type { ToolCallBlock } from "../../../src/core/shapes/message.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import type { Story } from "../story.ts";
import type { Row } from "../world/database.ts";
import { type SessionMap, sightOf } from "./rights.ts";

/** Fields that may name hidden sessions: texts of people and models, and the cycle of a refused wait (I7). */
const WORDS = new Set([
  "messages",
  "excerpt",
  "reply",
  "text",
  "task",
  "cycle",
  "derivedTitle",
  "lastMessagePreview",
]);

function withoutWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutWords);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([name]) => !WORDS.has(name));
  const isCycle = fields.some(([name, field]) => name === "code" && field === "wait_cycle");
  return Object.fromEntries(
    fields
      .filter(([name]) => !(isCycle && name === "error"))
      .map(([name, field]) => [name, withoutWords(field)]),
  );
}

/** Returns the sessions that a value names by key, id or label, except those in `asked`. */
export function namedIn(story: Story, value: unknown, asked: unknown): Set<string> {
  const text = JSON.stringify(withoutWords(value));
  const before = (JSON.stringify(asked) ?? "").toLowerCase();
  const named = new Set<string>();
  for (const { key, sessionId, label } of story.known.values()) {
    const names = [key, sessionId, ...(label === undefined ? [] : [label])];
    if (names.some((name) => text.includes(name) && !before.includes(name.toLowerCase()))) named.add(key);
  }
  return named;
}

/** I14: checks that a value contains none of the planted secrets. */
export function checkMasked(story: Story, text: string, where: string): void {
  const leaked = story.secrets.find((secret) => text.includes(secret));
  if (leaked !== undefined) story.wrong("I14", `${where} has the secret ${leaked}: ${text.slice(0, 400)}`);
  const content = story.contents.find((one) => text.includes(one));
  if (content !== undefined)
    story.wrong("I14", `${where} has the attachment ${content}: ${text.slice(0, 400)}`);
}

/** The result of a tool call, with its caller. */
export interface Returned {
  readonly sessionKey: string;
  readonly settings: Settings;
  /** The sessions at each moment of the call. */
  readonly moments: readonly SessionMap[];
  readonly name: string;
  readonly args: unknown;
}

type Result = Readonly<Record<string, unknown>>;

/**
 * Returns the target of a send from before a restart, if it is now hidden, archived or deleted. The call still
 * waits for its answer.
 */
async function sentEarlier(
  story: Story,
  { name, settings, moments }: Returned,
  result: Result,
): Promise<unknown> {
  if (name !== "sessions_send" || typeof result.runId !== "string") return undefined;
  const [run] = await story.look("select session_key, accepted_at from runs where run_id = ?", result.runId);
  const isGone = moments.every((sessions) => sessions.get(String(run?.session_key))?.archived !== false);
  const isHidden = story.settingsAt(Number(run?.accepted_at)) !== settings;
  return isGone || isHidden ? run?.session_key : undefined;
}

async function checkNames(story: Story, returned: Returned, result: Result): Promise<void> {
  const { sessionKey, settings, moments, name, args } = returned;
  const isSeen = (key: string): boolean =>
    moments.some((sessions) => sightOf(sessionKey, sessions, settings).has(key));
  // An agent that calls its own main session `main` learns only the full key of that session.
  const main = `agent:${story.known.get(sessionKey)?.agentId}:main`;
  const earlier = await sentEarlier(story, returned, result);
  for (const key of namedIn(story, result, [args, main])) {
    const isOwnChild = name === "sessions_spawn" && key === result.childSessionKey;
    if (key === sessionKey || key === earlier || isOwnChild || isSeen(key)) continue;
    story.wrong("I9", `${name} of ${sessionKey} names ${key}: ${JSON.stringify(result).slice(0, 600)}`);
  }
}

/** Checks that a text belongs to the session from which it was reported. */
async function checkPlaces(story: Story, places: ReadonlyMap<string, string>): Promise<void> {
  if (places.size === 0) return;
  const rows = await story.look(
    "select id, session_id from messages where id in (select value from json_each(?))",
    JSON.stringify([...places.keys()]),
  );
  for (const row of rows) {
    const said = places.get(String(row.id));
    if (said !== row.session_id)
      story.wrong("I9", `message ${String(row.id)} is of ${String(row.session_id)}`);
  }
}

/** The end of a message according to the rows. */
interface StoredEnd {
  readonly ended: boolean;
  readonly reply: string | undefined;
  readonly code: string | undefined;
}

/**
 * Returns the end of a message. This is the end of its run, or the end of its conversation if the message is
 * in an inbox, where the run ends at once.
 */
function endOf(row: Row): StoredEnd {
  const text = (value: unknown): string | undefined => (value === null ? undefined : String(value));
  if (row.kind === "append" && row.state === "ok") {
    const stopped = ["session_reset", "session_deleted"].find((code) => code === row.end_reason);
    return { ended: row.flow_ended_at !== null, reply: text(row.round1_reply), code: stopped };
  }
  const code = row.state === "ok" ? undefined : (text(row.code) ?? "run_failed");
  return { ended: row.ended_at !== null, reply: text(row.reply) ?? "", code };
}

/** I12: checks that the result of a send matches the rows of its run and its conversation. */
async function checkSend(story: Story, result: Result): Promise<void> {
  const { runId, status, code, reply } = result;
  if (typeof runId !== "string") return;
  story.promised.add(runId);
  const [row] = await story.look(
    `select runs.*, flows.round1_reply, flows.end_reason, flows.ended_at as flow_ended_at
     from runs left join flows on flows.flow_id = runs.flow_id where run_id = ?`,
    runId,
  );
  if (row === undefined) return story.wrong("I2", `run ${runId} was promised and is not there`);
  // A deletion blanks the reply, before or after the sender gets it.
  if (row.state === "ok" && row.kind === "turn" && row.reply === null) return;
  const end = endOf(row);
  const about = `a send of ${runId} (${String(row.state)}, ${JSON.stringify(end)}) says ${JSON.stringify(result)}`;
  if (status === "ok") {
    const silent = /^\s*(REPLY_SKIP|ANNOUNCE_SKIP)?\s*$/.test(end.reply ?? "");
    const expected = silent ? "" : plainRedactor.mask(end.reply ?? "");
    if (end.code !== undefined || end.reply === undefined || reply !== expected) story.wrong("I12", about);
  }
  if (status === "error" && (!end.ended || end.code === undefined || end.code !== code))
    story.wrong("I12", about);
}

export async function checkReturned(story: Story, returned: Returned, text: string): Promise<void> {
  const { name, sessionKey } = returned;
  checkMasked(story, text, `the result of ${name} for ${sessionKey}`);
  const result = JSON.parse(text) as Result;
  await checkNames(story, returned, result);
  if (name === "sessions_send") await checkSend(story, result);
  if (name === "sessions_spawn" && result.status === "accepted") story.promised.add(String(result.runId));
  if (name === "sessions_history" && Array.isArray(result.messages)) {
    const places = result.messages.map((one: { id: string }): [string, string] => [
      one.id,
      String(result.sessionId),
    ]);
    await checkPlaces(story, new Map(places));
  }
  if (name === "sessions_search" && Array.isArray(result.hits)) {
    const hits = result.hits as { messageId: string; sessionId: string }[];
    await checkPlaces(story, new Map(hits.map((hit) => [hit.messageId, hit.sessionId])));
    const asked = JSON.stringify(returned.args);
    if (hits.length > 0 && story.secrets.some((secret) => asked.includes(secret)))
      story.wrong("I14", `a search for a secret finds it: ${asked}`);
  }
  if (name === "subagents" && Array.isArray(result.cancelled)) {
    for (const key of result.cancelled) {
      story.stopped.add(String(key));
      story.cancelled.add(String(key));
    }
  }
}

/** Returns the arguments of the tool calls by their ids. */
export function argumentsOf(calls: readonly ToolCallBlock[], id: string): unknown {
  return calls.findLast((call) => call.id === id)?.arguments;
}
