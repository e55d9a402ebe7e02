// Owns the OpenAI-compatible routes: a chat completion or a response is one run of an agent.
// A run takes the same path as any other run. A request is refused only before its stream begins.
// The result comes from the run's row, even if another process executed the run (I12).
// OA3: a run in a temporary session without an Idempotency-Key is cancelled when its client leaves, since
// nobody waits for it. Any other run continues, also one in the background.

import type { Context } from "hono";
import { agentsFor } from "../../access/token.ts";
import { optional } from "../../core/optional.ts";
import { clientCalls } from "../../core/rules/client-tools.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { spokenText } from "../../core/rules/turn-rules.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import { type ClientResult, endCodeOf, isEnded, PLEASE_CONTINUE, type Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { isTemporaryKey, KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { findAgent, type TokenScope } from "../../core/shapes/settings/settings.ts";
import { sendDirect } from "../../flows/conversation/direct.ts";
import { ownRun } from "../../flows/session/client-session.ts";
import { type Opening, openSession } from "../../flows/session/open.ts";
import { thrown } from "../../gateway/answer.ts";
import { type Caller, keyOwnerOf } from "../../gateway/auth.ts";
import type { BasicDeps, CallContext } from "../../gateway/call.ts";
import { type Dispatcher, needScope } from "../../gateway/dispatch.ts";
import type { HttpParts } from "../../gateway/http/http.ts";
import { checkedKey, type Door, type Env, readBody, refuse } from "../../gateway/http/request.ts";
import {
  type EndedRun,
  type Followed,
  RunFeed,
  type SentPicture,
  streamRun,
} from "../../gateway/http/run-stream.ts";
import { untilEnded } from "../../gateway/methods/agent.ts";
import { contentOfFile, filesOfRun } from "../../store/queries/channels/sent-files.ts";
import { forgetRun, getRun, listRuns } from "../../store/queries/runs/runs.ts";
import { readRun } from "../../store/queries/transcripts/transcripts.ts";
import type { Db } from "../../store/sql.ts";
import {
  type Answered,
  answeredBy,
  hasFailed,
  hasMessage,
  hasResults,
  placeName,
  seedOf,
  unknownCall,
} from "./calls.ts";
import { chatAnswer, chatStream } from "./chat.ts";
import { BODY_MAX_BYTES } from "./content.ts";
import { Conversations, conversationSession } from "./conversations.ts";
import type { OpenAiApi } from "./fields.ts";
import { wrong } from "./format.ts";
import { type ListedItem, readPage, takePage } from "./pages.ts";
import { type AgentRequest, agentIn, modelName, RESPONSE_PREFIX, readRequest } from "./request.ts";
import { endedResponse, inputItems, outputItems, responseStream, storedResponse } from "./responses.ts";
import {
  continuedSession,
  NO_RESPONSE,
  placesIn,
  resultOf,
  temporarySession,
  userSession,
} from "./sessions.ts";

const SESSION_HEADER = "x-parley-session-key";
const IGNORED_HEADER = "x-parley-ignored-fields";
const ROUTES = [
  "GET /v1/models, POST /v1/chat/completions, POST /v1/responses, GET and DELETE /v1/responses/{id}",
  "POST /v1/responses/{id}/cancel, GET /v1/responses/{id}/input_items, /v1/conversations",
].join(", ");
const RESPONSE_ROUTE = /^(GET|DELETE|POST) \/v1\/responses\/([^/]+)(\/cancel|\/input_items)?$/;
const ACTIONS: Readonly<Record<string, "fetch" | "delete" | "cancel" | "list">> = {
  GET: "fetch",
  DELETE: "delete",
  "POST/cancel": "cancel",
  "GET/input_items": "list",
};

interface ReadRequest {
  readonly request: AgentRequest;
  readonly agentId: string;
  /** The session in the header. */
  readonly sessionKey?: string;
  readonly idempotencyKey?: string;
}

function agentIds({ settings }: BasicDeps, caller: Caller): string[] {
  return agentsFor(settings, caller).map((agent) => agent.id);
}

function listModels(c: Context<Env>, deps: BasicDeps): Response {
  const all = agentsFor(deps.settings, c.get("caller")).map(({ id, name }) => ({
    id: modelName(id),
    object: "model",
    created: 0,
    owned_by: "parley",
    ...optional({ name }),
  }));
  const wanted = /^\/v1\/models\/(.+)$/.exec(c.req.path)?.[1];
  if (wanted === undefined) return c.json({ object: "list", data: all });
  const agentId = agentIn(decodeName(wanted), agentIds(deps, c.get("caller")));
  if (!agentId.ok) return refuse(c, agentId);
  return c.json(all.find((model) => model.id === modelName(agentId.value)));
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Reads the headers and the body. */
async function readHttpRequest(
  c: Context<Env>,
  api: OpenAiApi,
  deps: BasicDeps,
): Promise<Result<ReadRequest>> {
  const sessionKey = c.req.header(SESSION_HEADER)?.trim();
  if (sessionKey === "") return fail("invalid_argument", `the header ${SESSION_HEADER} must not be empty`);
  if (sessionKey !== undefined && sessionKey.length > KEY_CHARS_MAX) {
    return fail("invalid_argument", `the header ${SESSION_HEADER} has more than ${KEY_CHARS_MAX} characters`);
  }
  const key = checkedKey("the header Idempotency-Key", c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await readBody(c, BODY_MAX_BYTES);
  if (!body.ok) return body;
  const request = readRequest(api, body.value, sessionKey !== undefined);
  if (!request.ok) return request;
  const agentId = agentIn(request.value.model, agentIds(deps, c.get("caller")));
  if (!agentId.ok) return agentId;
  return ok({
    request: request.value,
    agentId: agentId.value,
    ...optional({ sessionKey, idempotencyKey: key.value }),
  });
}

function mismatch(what: string, session: Session): Failure {
  return fail("session_mismatch", `${what}: it is session ${session.key} of agent "${session.agentId}"`, {
    hint: "Name one session, and the model of its agent.",
  });
}

/**
 * Returns the session that the request's header names, else the session of its `user` field. Returns
 * undefined if the request has neither.
 */
async function namedSession(ctx: CallContext, asked: ReadRequest): Promise<Result<Opening> | undefined> {
  const { request, agentId, sessionKey } = asked;
  if (request.conversation !== undefined) return conversationSession(ctx, request.conversation, agentId);
  if (sessionKey !== undefined) {
    return openSession(ctx.deps, ctx.viewer, sessionKey);
  }
  if (request.user === undefined) return undefined;
  return userSession(ctx.deps, ctx.viewer, { agentId, user: request.user });
}

/** A session for the run, and what the run begins with. */
interface Begun {
  readonly opening: Opening;
  readonly text: string;
  readonly results?: readonly ClientResult[];
  readonly callId?: string;
}

/** Returns the session and the input of a run that begins with results of an earlier run's calls. */
async function afterCalls(
  ctx: CallContext,
  { request, agentId }: ReadRequest,
  named: Opening | undefined,
  { run, results, callId, next }: Answered,
): Promise<Result<Begun | undefined>> {
  const {
    text,
    images,
    previousRunId,
    results: [last],
  } = request;
  const isFree = named === undefined && previousRunId === undefined;
  const isRepeated = next !== undefined && hasFailed(next);
  const end = isRepeated ? next : run;
  const begun = isRepeated ? undefined : next;
  const isOther = begun !== undefined && !(hasResults(begun, results) && hasMessage(begun, request));
  if (isFree && (isOther || run.agentId !== agentId)) return ok(undefined);
  // The session has the results already, and gets the message alone.
  const isMore =
    isOther && named !== undefined && hasResults(begun, results) && (text !== "" || images.length > 0);
  if (isOther && !isMore) {
    return fail("idempotency_conflict", "these calls have other results or another message already", {
      hint: "A call has one result. Continue with the answer to the first results.",
    });
  }
  if (isFree && begun === undefined) {
    const { db } = ctx.deps.engine.store;
    const [newest] = await listRuns(db, { sessionKey: run.sessionKey, limit: 1 });
    if (newest?.runId !== end.runId) return ok(undefined);
  }
  const opening =
    named === undefined ? await continuedSession(ctx.deps, ctx.viewer, end.runId, callId) : ok(named);
  if (!opening.ok) return opening;
  const { key, sessionId } = opening.value.session;
  const isElsewhere = previousRunId !== undefined && previousRunId !== run.runId;
  if (last !== undefined && (isElsewhere || key !== run.sessionKey || sessionId !== run.sessionId))
    return unknownCall(last);
  if (isMore) return ok({ opening: opening.value, text });
  // The results are given again, since the failed run may not have begun. The transcript takes them once.
  const given = isRepeated ? text || PLEASE_CONTINUE : text;
  return ok({ opening: opening.value, text: given, results, callId });
}

/** Returns a new session with the messages of the request. */
async function newlyBegun(ctx: CallContext, { agentId, request }: ReadRequest): Promise<Result<Begun>> {
  const seed = await seedOf(ctx, request.seed);
  if (!seed.ok) return seed;
  const places = placesIn(seed.value);
  const results: ClientResult[] = [];
  for (const given of request.results) {
    const placed = places.get(given.callId ?? "");
    if (placed === undefined) return unknownCall(given);
    results.push(resultOf(placed, given));
  }
  const opening = await temporarySession(ctx.deps, ctx.viewer, { agentId, seed: seed.value });
  if (!opening.ok) return opening;
  return ok({ opening: opening.value, text: request.text, ...(results.length === 0 ? {} : { results }) });
}

/** Returns the session of the run, and the run's input. */
async function begunFor(ctx: CallContext, asked: ReadRequest): Promise<Result<Begun>> {
  const { request } = asked;
  const { previousRunId, results, text } = request;
  const named = await namedSession(ctx, asked);
  if (named?.ok === false) return named;
  const continued =
    previousRunId === undefined ? undefined : await continuedSession(ctx.deps, ctx.viewer, previousRunId);
  if (continued?.ok === false) return continued;
  const answered = results.length === 0 ? ok(undefined) : await answeredBy(ctx, request);
  if (!answered.ok) return answered;
  const after =
    answered.value === undefined ? ok(undefined) : await afterCalls(ctx, asked, named?.value, answered.value);
  if (!after.ok) return after;
  if (after.value !== undefined) return ok(after.value);
  const opening = continued ?? named;
  if (opening === undefined) return newlyBegun(ctx, asked);
  const [unknown] = results;
  if (unknown !== undefined) return unknownCall(unknown);
  const { session } = opening.value;
  if (named !== undefined && named.value.session.key !== session.key) {
    return mismatch("previous_response_id belongs to another session than the named one", session);
  }
  return ok({ opening: opening.value, text });
}

function followedOf({ runId, sessionKey, agentId, acceptedAt }: Run): Followed {
  return { runId, sessionKey, agentId, acceptedAt };
}

/** Accepts the run. A retry with the same idempotency key returns the run of the first request. */
async function accept(ctx: CallContext, asked: ReadRequest): Promise<Result<Followed>> {
  const begun = await begunFor(ctx, asked);
  if (!begun.ok) return begun;
  const { opening, ...input } = begun.value;
  const { session } = opening;
  if (session.agentId !== asked.agentId)
    return mismatch(`the model names agent "${asked.agentId}", but the session has another agent`, session);
  const { images, senderName, instructions, thinking, format, clientTools, store, background } =
    asked.request;
  const isOutside = findAgent(ctx.deps.settings, session.agentId)?.runtime !== undefined;
  if (clientTools !== undefined && clientTools.none !== true && (isOutside || session.external))
    return wrong("tools", `cannot be used: agent "${session.agentId}" is a program that calls its own only`);
  const accepted = await sendDirect(ctx.deps, {
    session,
    before: (unit) => opening.before(unit),
    ...input,
    images,
    guest: isGuest(ctx.viewer),
    askedBy: keyOwnerOf(ctx.caller),
    ...optional({ senderName, thinking, format, clientTools, extraContext: instructions }),
    ...optional({ background, forgotten: store === false || undefined }),
    remember: (unit, { run }) => ctx.remember(unit, followedOf(run)),
  });
  return accepted.ok ? ok(followedOf(accepted.value.run)) : accepted;
}

/** Returns whether the model's last message was cut off at its output limit. */
function isCutShort(messages: readonly Message[]): boolean {
  const last = messages.findLast((message) => message.role === "assistant");
  return last?.role === "assistant" && last.stopReason === "length";
}

class OpenAiDoor {
  readonly #deps: BasicDeps;
  readonly #dispatcher: Dispatcher;
  readonly #feed: RunFeed;
  readonly #conversations: Conversations;

  constructor({ deps, dispatcher }: HttpParts) {
    this.#deps = deps;
    this.#dispatcher = dispatcher;
    this.#feed = new RunFeed(deps.engine.bus);
    const outputOf = async (run: Run) => outputItems(run, await this.#endOf(run), await this.#answerIn(run));
    this.#conversations = new Conversations(deps, dispatcher, outputOf);
  }

  async handle(c: Context<Env>): Promise<Response> {
    const { method, path } = c.req;
    if (method === "GET" && /^\/v1\/models(\/.+)?$/.test(path)) {
      return this.#refuseScope(c, "operator.read") ?? listModels(c, this.#deps);
    }
    const [, verb, response, part = ""] = RESPONSE_ROUTE.exec(`${method} ${path}`) ?? [];
    const action = ACTIONS[`${verb}${part}`];
    if (response !== undefined && action !== undefined)
      return this.#answerStored(c, decodeName(response), action);
    if (method === "POST" && path === "/v1/chat/completions") return this.#run(c, "chat");
    if (method === "POST" && path === "/v1/responses") return this.#run(c, "responses");
    const conversations = this.#conversations.handle(c);
    if (conversations !== undefined) return conversations;
    return refuse(
      c,
      fail(
        "unknown_method",
        `unknown route ${c.req.method} ${c.req.path}; the available routes are: ${ROUTES}`,
      ),
    );
  }

  /** Returns the error response if the caller lacks this right. */
  #refuseScope(c: Context<Env>, scope: TokenScope): Response | undefined {
    const allowed = needScope(c.get("caller"), `${c.req.method} ${c.req.path}`, scope);
    return allowed.ok ? undefined : refuse(c, allowed);
  }

  /** Handles a request about a response that the caller's token requested earlier. */
  async #answerStored(c: Context<Env>, id: string, action: (typeof ACTIONS)[string]): Promise<Response> {
    const changes = action === "cancel" || action === "delete";
    const refused = this.#refuseScope(c, changes ? "operator.write" : "operator.read");
    if (refused !== undefined) return refused;
    if (c.req.query("stream") === "true") {
      return refuse(c, wrong("stream", "must be false: a stored response cannot be streamed"));
    }
    const runId = id.startsWith(RESPONSE_PREFIX) ? id.slice(RESPONSE_PREFIX.length) : "";
    const handle = async ({ deps, viewer, caller }: CallContext): Promise<Result<Run>> => {
      const own = await ownRun(deps, viewer, { runId, askedBy: keyOwnerOf(caller) });
      if (!own.ok) return own;
      if (own.value.forgottenAt !== undefined) return fail("run_not_found", NO_RESPONSE);
      const { engine } = deps;
      if (action === "delete") await engine.commit((unit) => forgetRun(unit.tx, runId, unit.now));
      if (action !== "cancel" || isEnded(own.value.state)) return own;
      await engine.abort({ sessionKey: own.value.sessionKey, runId });
      return ok((await getRun(engine.store.db, runId)) ?? own.value);
    };
    const request = { name: `openai.response.${action}`, params: { runId }, handle };
    const found = await this.#dispatcher.perform(c.get("caller"), request, c.req.raw.signal);
    if (!found.ok) return refuse(c, found);
    if (action === "delete") return c.json({ id, object: "response", deleted: true });
    return action === "list" ? this.#listItems(c, found.value) : c.json(await this.#responseOf(found.value));
  }

  async #responseOf(run: Run, asked?: AgentRequest): Promise<object> {
    const text = await this.#answerIn(run);
    return storedResponse(await this.#endOf(run), text, this.#deps.world.redactor, asked);
  }

  async #listItems(c: Context<Env>, run: Run): Promise<Response> {
    const wanted = readPage(c.req.query());
    if (!wanted.ok) return refuse(c, wanted);
    const items = inputItems(run).map((item) => this.#deps.world.redactor.json(item) as ListedItem);
    if (wanted.value.order === "desc") items.reverse();
    const page = await takePage(items, wanted.value, "must be the id of an input item");
    return page.ok ? c.json(page.value) : refuse(c, page);
  }

  /** Reads what a run has left besides its text. */
  async #endOf(run: Run): Promise<EndedRun> {
    const { world, engine } = this.#deps;
    const { db } = engine.store;
    const messages = await readRun(db, run.runId);
    await world.gather?.();
    const calls = clientCalls(run, messages).map((placed) => ({
      place: placeName(placed),
      name: placed.call.name,
      arguments: JSON.stringify(world.redactor.json(placed.call.arguments)),
    }));
    return { run, cutShort: isCutShort(messages), pictures: await picturesOf(db, run), calls };
  }

  /** Returns the text of a run for its client. A chosen silence is an empty text. */
  #answerIn({ reply = "" }: Pick<Run, "reply">): Promise<string> {
    return this.#deps.world.redactor.whole(spokenText(reply));
  }

  async #run(c: Context<Env>, api: OpenAiApi): Promise<Response> {
    // The scope is checked first, so that the body of a caller without it is never read.
    const refused = this.#refuseScope(c, "operator.write");
    if (refused !== undefined) return refused;
    const taken = await this.#acceptRequest(c, api);
    if (!taken.ok) return refuse(c, taken);
    const { asked, followed } = taken.value;
    c.header("x-request-id", followed.runId);
    const { ignored } = asked.request;
    if (ignored.length > 0) c.header(IGNORED_HEADER, ignored.join(", "));
    c.header(SESSION_HEADER, followed.sessionKey.replace(/[^!-~]+/gu, encodeURIComponent));
    if (asked.request.background === true && !asked.request.stream) {
      const run = await getRun(this.#deps.engine.store.db, followed.runId);
      if (run !== undefined) return c.json(await this.#responseOf(run, asked.request));
    }
    return asked.request.stream ? this.#stream(c, asked, followed) : this.#answer(c, asked, followed);
  }

  /**
   * Reads a request and accepts its run. After that, the request's content is only in the store, not in
   * memory.
   */
  async #acceptRequest(
    c: Context<Env>,
    api: OpenAiApi,
  ): Promise<Result<{ asked: ReadRequest; followed: Followed }>> {
    try {
      const asked = await readHttpRequest(c, api, this.#deps);
      if (!asked.ok) return asked;
      const { idempotencyKey, ...params } = asked.value;
      const keyed = optional({ idempotencyKey });
      const handle = (ctx: CallContext) => accept(ctx, asked.value);
      const request = { name: `openai.${api}`, params, ...keyed, handle };
      const followed = await this.#dispatcher.perform(c.get("caller"), request, c.req.raw.signal);
      if (!followed.ok) return followed;
      const none = { images: [], seed: [], results: [], everyResult: [] };
      const lean = { ...asked.value.request, text: "", ...none };
      return ok({ asked: { ...asked.value, request: lean }, followed: followed.value });
    } catch (error) {
      const failure = thrown(this.#deps.world, error, `${c.req.method} ${c.req.path}`);
      // The run may have been accepted, so a retry without a key could run twice.
      const accepted = c.req.header("idempotency-key") === undefined;
      return { ...failure, details: { ...failure.details, accepted } };
    }
  }

  async #answer(c: Context<Env>, asked: ReadRequest, followed: Followed): Promise<Response> {
    const ended = await this.#awaitEnd(c, asked, followed);
    if (!ended.ok) return refuse(c, ended);
    const { request } = asked;
    const text = await this.#answerIn(ended.value.run);
    return c.json(
      request.api === "chat"
        ? chatAnswer(followed, ended.value, text)
        : endedResponse(followed, request, ended.value, text),
    );
  }

  #stream(c: Context<Env>, asked: ReadRequest, followed: Followed): Response {
    const { request } = asked;
    const { redactor } = this.#deps.world;
    const gone = new AbortController();
    const ended = this.#awaitEnd(c, asked, followed, AbortSignal.any([c.req.raw.signal, gone.signal]));
    const body = streamRun({
      feed: this.#feed,
      clock: this.#deps.world.clock,
      redactor,
      runId: followed.runId,
      shape:
        request.api === "chat"
          ? chatStream(followed, request.includeUsage, redactor)
          : responseStream(followed, request, redactor),
      finalOnly: request.format !== undefined,
      ended,
      onGone: () => gone.abort(),
      cut: () => c.env.outgoing.destroy(),
    });
    c.header("content-type", "text/event-stream; charset=utf-8");
    // Tells proxies not to buffer the stream.
    c.header("x-accel-buffering", "no");
    return c.body(body);
  }

  /**
   * Waits for the end of the run. Returns a failure if the run did not succeed, or if the gateway stops
   * first.
   */
  async #awaitEnd(
    c: Context<Env>,
    asked: ReadRequest,
    followed: Followed,
    client = c.req.raw.signal,
  ): Promise<Result<EndedRun>> {
    const { stopped } = this.#dispatcher;
    const accepted = asked.idempotencyKey === undefined;
    try {
      const run = await untilEnded(this.#deps.engine, followed.runId, AbortSignal.any([client, stopped]));
      if (run?.ok === false) return { ...run, details: { accepted } };
      if (run !== undefined) return await this.#outcome(run.value);
      if (!stopped.aborted) await this.#abortUnread(asked, followed);
      return fail(
        "shutting_down",
        `the gateway is stopping; run ${followed.runId} is kept and continues later`,
        {
          hint: "Call agent.wait for its result, or repeat a request that has an Idempotency-Key.",
          details: { accepted },
        },
      );
    } catch (error) {
      const failure = thrown(this.#deps.world, error, `following run ${followed.runId}`);
      return { ...failure, details: { ...failure.details, accepted } };
    }
  }

  async #outcome(run: Run): Promise<Result<EndedRun>> {
    const code = endCodeOf(run);
    if (code === undefined) {
      // Let other work run before the read: the other subscribers are still being notified in this step, and
      // reading the run's messages may take long.
      await this.#deps.world.gather?.();
      return ok(await this.#endOf(run));
    }
    const details = { accepted: true, ended: true };
    return fail(code, run.error ?? `the run ended: ${run.state}`, { details });
  }

  /** Handles a client that left before its run ended (OA3). */
  async #abortUnread(asked: ReadRequest, { runId, sessionKey }: Followed): Promise<void> {
    const isNamed = asked.idempotencyKey !== undefined || asked.sessionKey !== undefined;
    const mayComeBack = isNamed || asked.request.background === true;
    if (mayComeBack || !isTemporaryKey(sessionKey)) return;
    await this.#deps.engine.abort({ sessionKey, runId });
  }
}

/** Creates the handler of /v1/. */
export function createDoor(parts: HttpParts): Door {
  const door = new OpenAiDoor(parts);
  return (c) => door.handle(c);
}

/** Maximum bytes of all pictures of an answer. Later ones are left out; the page has them. */
const ALL_MAX_BYTES = 20 * 1024 * 1024;

/** Returns the pictures of a run that has ended, the oldest first. */
async function picturesOf(db: Db, run: Run): Promise<SentPicture[]> {
  const pictures: SentPicture[] = [];
  let leftBytes = ALL_MAX_BYTES;
  for (const { id, mimeType, bytes } of await filesOfRun(db, run)) {
    if (!mimeType.startsWith("image/") || bytes > leftBytes) continue;
    const content = await contentOfFile(db, id);
    if (content === undefined) continue;
    leftBytes -= bytes;
    pictures.push({ id, mimeType, content });
  }
  return pictures;
}
