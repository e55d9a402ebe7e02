// Requests of people and client programs to a gateway, and checks of the answers (I2, I4, I9, I12, I14).

import { optional } from "../../src/core/optional.ts";
import type { Result } from "../../src/core/shapes/errors.ts";
import type { Dice } from "../kit/dice.ts";
import { checkMasked, checkReturned, namedIn } from "./checks/results.ts";
import { fits, type SessionMap, treeOf } from "./checks/rights.ts";
import { OWNER_TOKEN } from "./plan.ts";
import type { KeyedRequest, Story } from "./story.ts";
import { textAround } from "./words.ts";

export interface Request {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Returns the key of a session, preferably of a session with unfinished work. */
function busyKey(story: Story, luck: Dice): string {
  const works = [...story.works];
  return works.length > 0 && luck.chance(0.6) ? luck.of(works).run.sessionKey : someKey(story, luck);
}

function someKey(story: Story, luck: Dice): string {
  const keys = [...story.sessions.keys()];
  return keys.length === 0 ? "agent:main:main" : luck.of(keys);
}

function keyed(story: Story, luck: Dice, share: number): Record<string, unknown> {
  return luck.chance(share) ? { idempotencyKey: story.word("key") } : {};
}

async function someRun(story: Story, luck: Dice, sessionKey: string): Promise<string | undefined> {
  const rows = await story.look(
    "select run_id from runs where session_key = ? order by lane_seq desc limit 4",
    sessionKey,
  );
  return rows.length === 0 ? undefined : String(luck.of(rows).run_id);
}

/** Returns a request that sends a message of a person or a program. */
function message(story: Story, luck: Dice): Request {
  const sessionKey = someKey(story, luck);
  const text = textAround(story, luck, story.word("p"));
  const base = { message: text, idempotencyKey: story.word("run") };
  if (luck.chance(0.5)) {
    const limit = luck.chance(0.12) ? { timeoutMs: 1 + luck.below(60) } : {};
    return { method: "chat.send", params: { sessionKey, ...base, ...limit } };
  }
  const where = luck.chance(0.2) ? { agentId: luck.of(["main", "research", "writer"]) } : { sessionKey };
  return { method: "agent", params: { ...where, ...base, ...(luck.chance(0.3) ? { deliver: true } : {}) } };
}

async function stop(story: Story, luck: Dice): Promise<Request> {
  const sessionKey = busyKey(story, luck);
  const runId = luck.chance(0.6) ? await someRun(story, luck, sessionKey) : undefined;
  const params = { sessionKey, ...optional({ runId }), ...keyed(story, luck, 0.5) };
  return { method: "chat.abort", params };
}

function change(story: Story, luck: Dice): Request {
  const key = someKey(story, luck);
  const patch = luck.of([
    { label: story.word("label") },
    { label: null },
    { sendPolicy: luck.of(["deny", "allow", null]) },
    { archived: false },
    { model: luck.of(["fake/wide", "fake/none", null]) },
    { thinkingLevel: "low" },
  ]);
  return { method: "sessions.patch", params: { key, ...patch, ...keyed(story, luck, 0.5) } };
}

function begin(story: Story, luck: Dice): Request {
  const agentId = luck.of(["main", "research", "writer", "nobody"]);
  return { method: "sessions.create", params: { agentId, idempotencyKey: story.word("key") } };
}

function end(story: Story, luck: Dice): Request {
  const key = busyKey(story, luck);
  if (luck.chance(0.6)) return { method: "sessions.reset", params: { key, ...keyed(story, luck, 0.5) } };
  const params = { key, deleteTranscript: luck.chance(0.5), ...keyed(story, luck, 0.5) };
  return { method: "sessions.delete", params };
}

/** Returns a request that calls a tool on behalf of a session. */
function tool(story: Story, luck: Dice): Request {
  const sessionKey = someKey(story, luck);
  const target = someKey(story, luck);
  const name = luck.of([
    "sessions_send",
    "sessions_send",
    "sessions_list",
    "sessions_history",
    "sessions_spawn",
  ]);
  const text = (): string => textAround(story, luck, story.word("o"));
  const seconds = luck.of([0, 0.02, 0.3, 5]);
  const args = {
    sessions_send: () => ({ sessionKey: target, message: text(), timeoutSeconds: seconds }),
    sessions_list: () => ({ messageLimit: 2 }),
    sessions_history: () => ({ sessionKey: target }),
    sessions_spawn: () => ({ task: text(), cleanup: luck.of(["keep", "delete"]) }),
  }[name as "sessions_send"]();
  const params = { name, arguments: args, sessionKey, ...keyed(story, luck, 0.7) };
  return { method: "tools.invoke", params };
}

async function outbox(story: Story, luck: Dice): Promise<Request> {
  const rows = await story.look("select id from deliveries where state = 'failed'");
  if (rows.length === 0 || luck.chance(0.3)) return { method: "deliveries.list", params: {} };
  const method = luck.of(["deliveries.retry", "deliveries.dismiss"]);
  return { method, params: { id: String(luck.of(rows).id), ...keyed(story, luck, 0.5) } };
}

function look(story: Story, luck: Dice): Request {
  const sessionKey = someKey(story, luck);
  const runs = [...story.promised];
  return luck.of<Request>([
    { method: "sessions.list", params: { includeLastMessage: true, includeArchived: true } },
    { method: "sessions.preview", params: { keys: [sessionKey] } },
    { method: "chat.history", params: { sessionKey } },
    { method: "tools.catalog", params: { sessionKey } },
    { method: "deliveries.list", params: {} },
    { method: "sessions.resolve", params: { key: sessionKey } },
    {
      method: "agent.wait",
      params: { runId: runs.length === 0 ? "none" : luck.of(runs), timeoutMs: luck.below(90) },
    },
    { method: "status", params: {} },
  ]);
}

function write(story: Story, luck: Dice): Request {
  const sessionKey = someKey(story, luck);
  const text = textAround(story, luck, story.word("n"));
  if (luck.chance(0.5)) {
    return { method: "chat.inject", params: { sessionKey, message: text, ...keyed(story, luck, 0.6) } };
  }
  return { method: "send", params: { to: sessionKey, message: text, idempotencyKey: story.word("key") } };
}

/** Chooses a request to the gateway. */
export async function someRequest(story: Story, luck: Dice): Promise<Request> {
  const { aborts, resets } = story.plan.features;
  const roll = luck.below(100);
  if (roll < 42) return message(story, luck);
  if (roll < 54) return aborts ? stop(story, luck) : message(story, luck);
  if (roll < 65) return resets ? end(story, luck) : message(story, luck);
  if (roll < 69) return change(story, luck);
  if (roll < 71) return begin(story, luck);
  if (roll < 80) return tool(story, luck);
  if (roll < 86) return outbox(story, luck);
  if (roll < 94) return look(story, luck);
  return write(story, luck);
}

/** Returns the same request with its idempotency key, or another request with the same key. */
export function repeated(request: Request, luck: Dice, story: Story): Request {
  if (luck.chance(0.75) || request.params.message === undefined) return request;
  return { ...request, params: { ...request.params, message: story.word("other") } };
}

/** A request that was sent, with the facts that the check of its answer needs. */
export interface Asked {
  readonly token: string;
  readonly request: Request;
  /** The time at which it was sent, and the sessions at that time. */
  readonly atMs: number;
  readonly sessions: SessionMap;
  readonly keyed: KeyedRequest | undefined;
}

/** Records a request before it is sent: the idempotency key, and the work that the request may stop. */
export function noteAsked(story: Story, token: string, request: Request): Asked {
  const { method, params } = request;
  const { key, sessionKey, runId, idempotencyKey } = params;
  if (/abort|reset|delete/.test(method)) {
    for (const one of [key, sessionKey, runId]) if (typeof one === "string") story.stopped.add(one);
  }
  if (params.archived === false) story.restored.add(String(key));
  if (method === "deliveries.retry") story.retried.add(String(params.id));
  const base = { token, request, atMs: story.time.now(), sessions: story.sessions };
  if (typeof idempotencyKey !== "string") return { ...base, keyed: undefined };
  const known = story.keyed.get(idempotencyKey);
  const same =
    known?.token === token &&
    JSON.stringify([method, params]) === JSON.stringify([known.method, known.params]);
  if (known !== undefined) {
    known.repeated = true;
    if (same) known.lost = false;
    else known.contested = true;
    return { ...base, keyed: same ? known : { ...known, method, params, token, answer: "another request" } };
  }
  const sinceMs = story.time.now();
  const fresh: KeyedRequest = {
    key: idempotencyKey,
    token,
    method,
    params,
    sinceMs,
    answer: undefined,
    lost: false,
    contested: false,
    repeated: false,
  };
  story.keyed.set(idempotencyKey, fresh);
  return { ...base, keyed: fresh };
}

function patternsOf(story: Story, token: string): readonly string[] | undefined {
  if (token === OWNER_TOKEN) return undefined;
  return story.plan.lastSettings.gateway.tokens.find((one) => one.token === token)?.sessions ?? [];
}

/** Returns true if a token covers a session. */
export function covers(story: Story, token: string, key: string): boolean {
  const patterns = patternsOf(story, token);
  return patterns === undefined || patterns.some((pattern) => fits(pattern, key));
}

/** Returns whether two answers are the same. A deletion of the session blanks the texts of the second one. */
function isSame(before: unknown, now: unknown): boolean {
  if (typeof before !== "object" || before === null || typeof now !== "object" || now === null)
    return before === now || (typeof before === "string" && now === "");
  const names = Object.keys({ ...before, ...now }) as never[];
  return names.every((name) => isSame(before[name], now[name]));
}

/** I4: checks that an idempotency key has one answer, and that no other request gets this answer. */
function checkKeyed(story: Story, { keyed: known, request }: Asked, answer: string): void {
  if (known === undefined) return;
  const about = `${request.method} under the key ${known.key}`;
  const first = story.keyed.get(known.key);
  if (first !== known) {
    if (first?.answer !== undefined)
      story.wrong("I4", `${about} is answered, and the key is another request's`);
    return;
  }
  if (known.answer !== undefined && !isSame(JSON.parse(known.answer), JSON.parse(answer)))
    story.wrong("I4", `${about} is answered ${known.answer} and ${answer}`);
  known.answer = answer;
}

async function checkStatus(story: Story, value: Record<string, unknown>): Promise<void> {
  const { runId, status } = value;
  const [row] = await story.look("select state, reply from runs where run_id = ?", String(runId));
  if (row === undefined) return story.wrong("I2", `run ${String(runId)} was promised and is not there`);
  const said = status === "ok" ? row.state === "ok" : status === "error" ? row.state !== "ok" : true;
  if (!said)
    story.wrong("I12", `a client is told ${JSON.stringify(value)} of a run that is ${String(row.state)}`);
}

/** SQL for a list of keys: the query's first value contains them as JSON. */
const LISTED = "(select value from json_each(?1))";

async function openConversation(story: Story, keys: string, beforeMs: number): Promise<string | undefined> {
  const [flow] = await story.look(
    `select flow_id from flows where kind = 'send' and state = 'open' and created_at < ?2
      and (requester_key in ${LISTED} or target_key in ${LISTED})`,
    keys,
    beforeMs,
  );
  return flow === undefined ? undefined : String(flow.flow_id);
}

/**
 * Checks that after an abort, reset or deletion all earlier work has ended, including the work that it
 * started. An abort ends only turns.
 */
async function checkStopped(story: Story, { request, atMs, keyed: known }: Asked): Promise<void> {
  const { method, params } = request;
  const key = String(params.sessionKey ?? params.key);
  const sinceMs = Math.min(atMs, known?.sinceMs ?? atMs);
  const stops = method !== "chat.abort";
  const keys = method === "sessions.delete" ? [...treeOf(key, story.known)] : [key];
  const list = JSON.stringify(keys);
  const [run] = await story.look(
    `select run_id, session_key from runs where session_key in ${LISTED}
      and ended_at is null and accepted_at < ?2 and (?3 or kind = 'turn')`,
    list,
    sinceMs,
    Number(stops),
  );
  if (run !== undefined)
    story.wrong("LC1", `${method} of ${key} leaves run ${String(run.run_id)} of ${String(run.session_key)}`);
  const conversation = stops ? await openConversation(story, list, sinceMs) : undefined;
  if (conversation !== undefined)
    story.wrong("LC1", `${method} of ${key} leaves the conversation ${conversation}`);
  if (method === "sessions.reset") return;
  const [job] = await story.look(
    `select target_key from flows where kind = 'spawn' and state = 'open'
      and requester_key in ${LISTED} and created_at < ?2`,
    list,
    sinceMs,
  );
  if (job !== undefined)
    story.wrong("CN1", `${method} of ${key} leaves the job of ${String(job.target_key)}`);
}

/** Checks an answer. `second`: true for the second answer to `agent`, which is sent at the end of its run. */
export async function checkAnswer(
  story: Story,
  asked: Asked,
  result: Result<unknown>,
  second = false,
): Promise<void> {
  const { token, request } = asked;
  const { method, params } = request;
  const shown = result.ok
    ? result.value
    : { error: result.error, hint: result.hint, details: result.details };
  const text = JSON.stringify(shown) ?? "";
  if (method !== "tools.invoke") {
    checkMasked(story, text, `the answer to ${method}`);
    const asks = [params, `agent:${String(params.agentId)}:main`];
    for (const key of namedIn(story, shown, asks))
      if (!covers(story, token, key))
        story.wrong("I9", `${method} with ${token} names ${key}: ${text.slice(0, 400)}`);
  }
  if (!result.ok) {
    const { lostAnswers, fullDisk } = story.plan.features;
    if (result.code === "store_unavailable" && lostAnswers && !fullDisk)
      story.wrong("I4", `${method} is told of a failure that was none: ${result.error}`);
    const known = asked.keyed;
    const own = known !== undefined && story.keyed.get(known.key) === known && !known.contested;
    if (own && result.code === "idempotency_conflict")
      story.wrong("I4", `${method} is refused under its own key ${known.key}: ${result.error}`);
    return;
  }
  const value = result.value as Record<string, unknown>;
  if (second) return checkStatus(story, value);
  checkKeyed(story, asked, text);
  if (/^(chat\.send|agent|chat\.inject)$/.test(method)) story.promised.add(String(value.runId));
  const stops = method === "sessions.reset" || method === "sessions.delete";
  if (stops || (method === "chat.abort" && params.runId === undefined)) await checkStopped(story, asked);
  if (method === "agent.wait") await checkStatus(story, value);
  if (method === "tools.invoke") {
    const moments = [asked.sessions, await story.refresh()];
    const sessionKey = String(params.sessionKey);
    const settings = story.settingsAt(story.time.now());
    // A repeated request gets its first answer, which may be older than later changes.
    if ((asked.keyed?.sinceMs ?? asked.atMs) < asked.atMs) return;
    const returned = { sessionKey, settings, moments, name: String(params.name), args: params.arguments };
    await checkReturned(story, returned, text);
  }
}
