// Owns the routes of conversations. A conversation is a session of the token that created it, and has the id
// of the session's first transcript. A run has the items of its response; a message without a run, and each
// of its calls, is an item of its own.
// CV1: a conversation ends when its session is deleted, archived or reset. Then no request finds it.
// CV2: items are added only while no run is active, so that they never separate a call from its result.

import type { Context } from "hono";
import { agentsFor } from "../../access/token.ts";
import { MESSAGE_MAX_CHARS } from "../../contract/methods/parts.ts";
import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { openAiKey } from "../../core/shapes/session-key.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import type { Unit } from "../../engine/unit.ts";
import { admit, freshSession, hashOf } from "../../flows/session/client-session.ts";
import { archiveIn, insertNew } from "../../flows/session/lifecycle.ts";
import type { Opening } from "../../flows/session/open.ts";
import { keyOwnerOf } from "../../gateway/auth.ts";
import { type BasicDeps, type CallContext, commitAnswer } from "../../gateway/call.ts";
import { type Dispatcher, needScope } from "../../gateway/dispatch.ts";
import { checkedKey, type Env, readBody, refuse } from "../../gateway/http/request.ts";
import { activeRuns, getRun, listRuns } from "../../store/queries/runs/runs.ts";
import {
  deleteSessionRows,
  findSessionId,
  getSession,
  holdSession,
} from "../../store/queries/sessions/sessions.ts";
import { lastMessages, readHistory } from "../../store/queries/transcripts/transcripts.ts";
import type { Db, Tx } from "../../store/sql.ts";
import { seedOf } from "./calls.ts";
import { BODY_MAX_BYTES, listedItems, readItems, saysAnything, type Turn } from "./content.ts";
import { wrong } from "./format.ts";
import { type ListedItem, pageOf, readPage, takePage } from "./pages.ts";
import { agentIn, CONVERSATION_PREFIX, metadataIn, tooLong } from "./request.ts";
import { inputItems, inputPart, resultItem, textPart } from "./responses.ts";
import { appendSeed } from "./sessions.ts";

/** Maximum number of characters of metadata, as JSON. */
const METADATA_CHARS_MAX = 16 * 1024;
/** Maximum number of items that one request adds. */
const ADDED_MAX = 20;
/** Maximum number of messages that a list reads at once. */
const READ_MAX = 100;
const ROUTE = /^(?:GET|POST|DELETE) \/v1\/conversations(?:\/([^/]+)(?:(\/items)(?:\/([^/]+))?)?)?$/;

/** Returns the items of a run's answer. */
type OutputOf = (run: Run) => Promise<object[]>;

/** One request. `list`: it is about the items. */
interface ConversationRequest {
  readonly verb: string;
  readonly id?: string;
  readonly list?: string;
  readonly itemId?: string;
  readonly body: Body;
}

type Body = Readonly<Record<string, unknown>>;

function refuseMissing(): Failure {
  return fail("session_not_found", "there is no conversation with this id that your token created", {
    hint: "Perhaps it was deleted, or its session was reset or archived. Create another one.",
    details: { param: "conversation" },
  });
}

function keyFor(ctx: CallContext, agentId: string, sessionId: string): string {
  // The owner is a part of the key, so that a token finds only its own conversations.
  const owner = hashOf(`conversation:${keyOwnerOf(ctx.caller)}`);
  return openAiKey(agentId, `${owner}-${sessionId}`, "conversation");
}

async function findConversation(
  ctx: CallContext,
  id: string,
  access: "read" | "send",
): Promise<Result<Session>> {
  const { db } = ctx.deps.engine.store;
  const known = id.startsWith(CONVERSATION_PREFIX) ? id.slice(CONVERSATION_PREFIX.length) : "";
  const key = (await findSessionId(db, known))?.key;
  const session = key === undefined ? undefined : await getSession(db, key);
  if (session === undefined || session.sessionId !== known || session.archivedAt !== undefined)
    return refuseMissing();
  if (session.key !== keyFor(ctx, session.agentId, known)) return refuseMissing();
  return (await admit(ctx.deps, ctx.viewer, session, access)).ok ? ok(session) : refuseMissing();
}

/** Checks in a transaction that the conversation is still there. */
async function hold(unit: Unit, { key, sessionId }: Session): Promise<Result<void>> {
  const held = await holdSession(unit.tx, key);
  return held?.sessionId === sessionId && held.archivedAt === undefined ? ok(undefined) : refuseMissing();
}

/**
 * Returns the session of a conversation, for a response. An empty conversation becomes one with the agent of
 * the response, since its client could not say which agent it will ask.
 */
export async function conversationSession(
  ctx: CallContext,
  id: string,
  agentId: string,
): Promise<Result<Opening>> {
  const found = await findConversation(ctx, id, "send");
  if (!found.ok) return found;
  const session = found.value;
  const { sessionId } = session;
  const { db } = ctx.deps.engine.store;
  if (session.agentId === agentId || !(await isEmpty(db, session)))
    return ok({ session, before: (unit) => hold(unit, session) });
  const moved = { ...session, agentId, key: keyFor(ctx, agentId, sessionId) };
  const admitted = await admit(ctx.deps, ctx.viewer, moved);
  if (!admitted.ok) return admitted;
  return ok({
    session: moved,
    async before(unit) {
      const held = await hold(unit, session);
      if (!held.ok) return held;
      if (!(await isEmpty(unit.tx, session))) return refuseMissing();
      const metadata = await readMetadata(unit.tx, session);
      await deleteSessionRows(unit.tx, session.key, { transcripts: true });
      unit.publish({ kind: "session", sessionKey: session.key, change: "deleted" });
      await insertNew(unit, moved);
      await writeMetadata(unit.tx, moved, metadata);
      return ok(undefined);
    },
  });
}

async function isEmpty(db: Db, { key, sessionId }: Session): Promise<boolean> {
  const runs = await listRuns(db, { sessionKey: key, limit: 1 });
  return runs.length === 0 && (await lastMessages(db, sessionId, 1, { includeTools: true })).length === 0;
}

function storedMetadata(value: unknown): ReturnType<typeof metadataIn> {
  const metadata = metadataIn(value);
  const chars = metadata.ok ? JSON.stringify(metadata.value ?? {}).length : 0;
  return chars > METADATA_CHARS_MAX
    ? wrong("metadata", `must have at most ${METADATA_CHARS_MAX} characters`)
    : metadata;
}

async function readMetadata(db: Db, { sessionId }: Session): Promise<object> {
  const rows = db.selectFrom("conversation_metadata").where("session_id", "=", sessionId);
  const row = await rows.select("metadata_json").executeTakeFirst();
  return row === undefined ? {} : JSON.parse(row.metadata_json);
}

async function writeMetadata(tx: Tx, { sessionId: session_id }: Session, metadata: object): Promise<void> {
  await tx.deleteFrom("conversation_metadata").where("session_id", "=", session_id).execute();
  if (Object.keys(metadata).length === 0) return;
  const row = { session_id, metadata_json: JSON.stringify(metadata) };
  await tx.insertInto("conversation_metadata").values(row).execute();
}

/** Reads the items that a request adds. */
function turnsIn(value: unknown): Result<Turn[]> {
  if (!Array.isArray(value) || value.length > ADDED_MAX)
    return wrong("items", `must be a list of at most ${ADDED_MAX} items`);
  const items = listedItems(value, "items");
  if (!items.ok) return items;
  const system = items.value.find(({ role }) => role === "system");
  if (system !== undefined)
    return wrong(system.where, "is a system message: send instructions with each response");
  const turns = readItems(items.value);
  if (!turns.ok) return turns;
  for (const turn of turns.value) {
    if (turn.text.length > MESSAGE_MAX_CHARS) return tooLong(turn.where);
    if (!saysAnything(turn)) return wrong(turn.where, "must not be empty");
  }
  return turns;
}

/** Returns the items of a message without a run. */
function messageItems(message: Message): ListedItem[] {
  const { id, role, content } = message;
  const status = "completed";
  if (role === "toolResult") return [resultItem(message, false)];
  const calls = content.filter((block) => block.type === "toolCall");
  const parts = content.flatMap((block): object[] => {
    if (block.type !== "text" && block.type !== "image") return [];
    return [role === "assistant" && block.type === "text" ? textPart(block.text) : inputPart(block)];
  });
  const said = { type: "message", id: `msg_${id}`, status, role, content: parts };
  return [
    ...(parts.length === 0 ? [] : [said]),
    ...calls.map(({ id: call_id, name, arguments: given }, index) => {
      const call = { id: `fc_${id}_${index}`, call_id, name, arguments: JSON.stringify(given) };
      return { type: "function_call", ...call, status };
    }),
  ];
}

export class Conversations {
  readonly #deps: BasicDeps;
  readonly #dispatcher: Dispatcher;
  readonly #outputOf: OutputOf;

  constructor(deps: BasicDeps, dispatcher: Dispatcher, outputOf: OutputOf) {
    this.#deps = deps;
    this.#dispatcher = dispatcher;
    this.#outputOf = outputOf;
  }

  /** Answers a request. Returns undefined if its path is not one of a conversation. */
  handle(c: Context<Env>): Promise<Response> | undefined {
    const found = ROUTE.exec(`${c.req.method} ${c.req.path}`);
    if (found === null) return undefined;
    const [, id, list, itemId] = found;
    const isKnown = c.req.method === "POST" ? itemId === undefined : id !== undefined;
    const hasVerb = isKnown && (c.req.method !== "DELETE" || list === undefined || itemId !== undefined);
    return hasVerb ? this.#answer(c, optional({ id, list, itemId })) : undefined;
  }

  async #answer(
    c: Context<Env>,
    path: Pick<ConversationRequest, "id" | "list" | "itemId">,
  ): Promise<Response> {
    const { method, path: name } = c.req;
    const caller = c.get("caller");
    const allowed = needScope(
      caller,
      `${method} ${name}`,
      method === "GET" ? "operator.read" : "operator.write",
    );
    if (!allowed.ok) return refuse(c, allowed);
    // The client sends no body with a conversation that begins empty.
    const hasNoBody = (c.req.header("content-length") ?? "0") === "0" && !c.req.header("transfer-encoding");
    const hasBody = method === "POST" && !hasNoBody;
    const body = hasBody ? await readBody(c, BODY_MAX_BYTES) : ok({});
    if (!body.ok) return refuse(c, body);
    if (!isObject(body.value)) return refuse(c, fail("invalid_argument", "the body must be one JSON object"));
    const key = checkedKey("the header Idempotency-Key", c.req.header("idempotency-key"));
    if (!key.ok) return refuse(c, key);
    const wanted: ConversationRequest = { verb: method, ...path, body: body.value };
    const keyed = optional({ idempotencyKey: method === "POST" ? key.value : undefined });
    const handle = (ctx: CallContext) => this.#perform(ctx, wanted);
    const request = { name: "openai.conversation", params: wanted, ...keyed, handle };
    const done = await this.#dispatcher.perform(caller, request, c.req.raw.signal);
    if (!done.ok) return refuse(c, done);
    const { session, added } = done.value;
    const answer = await this.#show(c, wanted, session, added);
    return answer.ok ? c.json(answer.value) : refuse(c, answer);
  }

  /** Does the work of a request. Its answer, which may be stored, has no texts. */
  async #perform(ctx: CallContext, wanted: ConversationRequest): Promise<Result<Done>> {
    const { verb, id, list, itemId, body } = wanted;
    if (id === undefined) return create(ctx, body);
    const found = await findConversation(ctx, id, verb === "GET" ? "read" : "send");
    if (!found.ok || verb === "GET") return found.ok ? ok({ session: found.value }) : found;
    const session = found.value;
    if (itemId !== undefined)
      return fail("invalid_argument", "an item cannot be deleted alone: a transcript only grows", {
        hint: "To leave it out, create another conversation without it.",
      });
    if (list !== undefined) return add(ctx, session, body);
    if (verb === "POST" && body.metadata === undefined) return wrong("metadata", "is required");
    const metadata = storedMetadata(body.metadata);
    if (!metadata.ok) return metadata;
    return commitAnswer(ctx, async (unit) => {
      const held = await hold(unit, session);
      if (!held.ok) return held;
      if (verb === "DELETE") {
        await ctx.deps.engine.abortIn(unit, { sessionKey: session.key });
        await archiveIn(unit, session.key);
      } else await writeMetadata(unit.tx, session, metadata.value ?? {});
      return ok({ session });
    });
  }

  async #show(
    c: Context<Env>,
    { verb, list, itemId }: ConversationRequest,
    session: Session,
    added: readonly string[] = [],
  ): Promise<Result<unknown>> {
    const id = `${CONVERSATION_PREFIX}${session.sessionId}`;
    if (list === undefined) {
      if (verb === "DELETE") return ok({ id, object: "conversation.deleted", deleted: true });
      const metadata = await readMetadata(this.#deps.engine.store.db, session);
      return ok({ id, object: "conversation", created_at: Math.floor(session.createdAt / 1000), metadata });
    }
    if (verb === "POST") {
      const items: ListedItem[] = [];
      for (const messageId of added) items.push(...(await this.#itemsAt(session, { messageId })));
      return ok(pageOf(items, false));
    }
    if (itemId === undefined) {
      const wanted = readPage(c.req.query());
      if (!wanted.ok) return wanted;
      return takePage(this.#items(session, wanted.value.order), wanted.value, "must be the id of an item");
    }
    for await (const item of this.#items(session, "desc")) if (item.id === itemId) return ok(item);
    return fail("message_not_found", `there is no item ${JSON.stringify(itemId)} in this conversation`);
  }

  /** Returns the items in this order. They are read one after another, since they may be large. */
  async *#items(session: Session, order: "asc" | "desc"): AsyncGenerator<ListedItem> {
    const newestFirst = findPlaces(this.#deps.engine.store.db, session);
    const all: Place[] = [];
    if (order === "asc") for await (const place of newestFirst) all.push(place);
    const places = order === "asc" ? all.reverse() : newestFirst;
    for await (const place of places) {
      const items = await this.#itemsAt(session, place);
      yield* order === "asc" ? items : items.reverse();
    }
  }

  async #itemsAt({ sessionId }: Session, { runId, messageId }: Place): Promise<ListedItem[]> {
    const { engine, world } = this.#deps;
    const { db } = engine.store;
    const run = runId === undefined ? undefined : await getRun(db, runId);
    if (run?.forgottenAt !== undefined) return [];
    if (run !== undefined && run.kind !== "append") {
      const input = inputItems(run).map((item) => world.redactor.json(item) as ListedItem);
      return run.state === "ok" ? [...input, ...((await this.#outputOf(run)) as ListedItem[])] : input;
    }
    const wanted = { sessionId, from: messageId, limit: 1, includeTools: true };
    const history = await readHistory(db, wanted);
    const messages = history.ok ? history.value.messages : [];
    return messages.flatMap(messageItems).map((item) => world.redactor.json(item) as ListedItem);
  }
}

/** Result of a request. `added`: ids of new messages. */
interface Done {
  readonly session: Session;
  readonly added?: readonly string[];
}

/** A run, or a message without one. `messageId`: its newest message. */
interface Place {
  readonly runId?: string | undefined;
  readonly messageId: string;
}

/** Returns the runs and other messages of a transcript, the newest first. */
async function* findPlaces(db: Db, { sessionId }: Session): AsyncGenerator<Place> {
  const seen = new Set<string>();
  let before: string | undefined;
  do {
    const wanted = { sessionId, limit: READ_MAX, includeTools: true, ...optional({ before }) };
    const history = await readHistory(db, wanted);
    if (!history.ok) break;
    const { messages, runIds, nextBefore } = history.value;
    for (const { id: messageId } of messages.toReversed()) {
      const runId = runIds.get(messageId);
      if (runId !== undefined && seen.has(runId)) continue;
      if (runId !== undefined) seen.add(runId);
      yield { runId, messageId };
    }
    before = nextBefore;
  } while (before !== undefined);
}

/** Creates a conversation. The field `model`, which OpenAI does not have, may name its agent. */
async function create(ctx: CallContext, { items, metadata: given, model }: Body): Promise<Result<Done>> {
  const metadata = storedMetadata(given);
  if (!metadata.ok) return metadata;
  const turns = turnsIn(items ?? []);
  if (!turns.ok) return turns;
  const { engine, settings } = ctx.deps;
  const agentIds = agentsFor(settings, ctx.caller).map((agent) => agent.id);
  const usual = agentIds.find((id) => id === defaultAgent(settings).id) ?? agentIds[0] ?? "";
  const agentId = model == null ? ok(usual) : agentIn(String(model), agentIds);
  if (!agentId.ok) return agentId;
  const seed = await seedOf(ctx, turns.value);
  if (!seed.ok) return seed;
  const sessionId = engine.newId();
  const key = keyFor(ctx, agentId.value, sessionId);
  const session = { ...freshSession(ctx.deps, { key, agentId: agentId.value }), sessionId };
  const admitted = await admit(ctx.deps, ctx.viewer, session);
  if (!admitted.ok) return admitted;
  const open = engine.accepting();
  if (!open.ok) return open;
  return commitAnswer(ctx, async (unit) => {
    await insertNew(unit, session);
    await appendSeed(unit, session, seed.value);
    await writeMetadata(unit.tx, session, metadata.value ?? {});
    return ok({ session });
  });
}

async function add(ctx: CallContext, session: Session, { items }: Body): Promise<Result<Done>> {
  if (!Array.isArray(items) || items.length === 0)
    return wrong("items", "must be a list with at least one item");
  const turns = turnsIn(items);
  if (!turns.ok) return turns;
  const seed = await seedOf(ctx, turns.value);
  if (!seed.ok) return seed;
  const open = ctx.deps.engine.accepting();
  if (!open.ok) return open;
  return commitAnswer(ctx, async (unit) => {
    const held = await hold(unit, session);
    if (!held.ok) return held;
    if ((await activeRuns(unit.tx, session.key)).length > 0)
      return fail("session_busy", "a response of this conversation is not complete yet", {
        hint: "Add the items when it is.",
      });
    const added = (await appendSeed(unit, session, seed.value)).map(({ id }) => id);
    return ok({ session, added });
  });
}
