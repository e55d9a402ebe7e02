// Owns `/a2a/`: the Agent2Agent protocol for the agents in `a2a.expose`, over JSON-RPC and HTTP+JSON.
// AD1: cards and the public key need no token. For an agent that is not exposed, or that the token does not
//      cover, the answer is the same as for a missing one.

import { A2A_PROTOCOL_VERSION, A2A_VERSION_HEADER } from "@a2a-js/sdk";
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from "@a2a-js/sdk/errors";
import type { Context } from "hono";
import { agentsFor } from "../../../access/token.ts";
import { fieldsOf, isObject } from "../../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { isEnded } from "../../../core/shapes/run.ts";
import type { AgentSettings, TokenScope } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";
import { thrown } from "../../../gateway/answer.ts";
import { needScope } from "../../../gateway/dispatch.ts";
import type { HttpParts } from "../../../gateway/http/http.ts";
import { type Env, nothingHere, readBody, refuse, statusOf } from "../../../gateway/http/request.ts";
import { RunFeed, streamRun } from "../../../gateway/http/run-stream.ts";
import { type Asked, type Binding, httpJsonBinding, jsonRpcBinding, NoRequest, routed } from "./bindings.ts";
import { type Cards, createCards, KEYS_PATH } from "./card.ts";
import { type A2aCall, A2aOperations, type FollowedTask, Refused } from "./operations.ts";
import { canPush, type PushOperations, pushOperations } from "./push.ts";
import { taskStream } from "./stream.ts";

/** Maximum bytes of a body: it may include pictures. */
const BODY_MAX_BYTES = 25 * 1024 * 1024;
const CARD_PATH = "/.well-known/agent-card.json";
/** Time for which clients may use a card without asking again. */
const CARD_MAX_SECONDS = 300;
/** Versions of the protocol that are spoken. A request without a version counts as 1.0. */
const VERSION = /^1(?:\.\d+)?$/;

const SCOPES: Readonly<Record<string, TokenScope>> = {
  SendMessage: "operator.write",
  SendStreamingMessage: "operator.write",
  CancelTask: "operator.write",
  GetTask: "operator.read",
  ListTasks: "operator.read",
  SubscribeToTask: "operator.read",
  CreateTaskPushNotificationConfig: "operator.write",
  DeleteTaskPushNotificationConfig: "operator.write",
};

/** Statuses of requests that were not accepted and may be sent again. */
const LATER = [429, 503];
const OF_PEERS: readonly string[] = [
  "SendMessage",
  "SendStreamingMessage",
  "GetTask",
  "SubscribeToTask",
  "CancelTask",
];

/** A request, and how to answer it. */
interface Request {
  readonly asked: Asked;
  readonly binding: Binding;
}

function missing(name: string): Failure {
  const text = `there is no agent ${quoted(name, 64)} for A2A clients with this token`;
  return fail("unknown_method", text, { hint: "a2a.expose names the agents." });
}

function checkVersion(c: Context<Env>): void {
  const version = c.req.header(A2A_VERSION_HEADER) ?? c.req.query(A2A_VERSION_HEADER) ?? A2A_PROTOCOL_VERSION;
  if (VERSION.test(version.trim())) return;
  const shown = quoted(version, 20);
  throw new VersionNotSupportedError(`version ${shown} of A2A is not supported; 1.0 is`);
}

/** Returns the id of a JSON-RPC request, or null if it has none that is valid. */
function rpcId(body: unknown): string | number | null {
  const { id } = fieldsOf(body);
  return typeof id === "string" || Number.isInteger(id) ? (id as string | number) : null;
}

function rpcAsked(body: unknown): Asked {
  if (body === undefined) throw new NoRequest("PARSE_ERROR", "the body is not valid JSON");
  const { jsonrpc, method, params } = fieldsOf(body);
  if (jsonrpc !== "2.0" || typeof method !== "string")
    throw new NoRequest(
      "INVALID_REQUEST",
      'the body must be a JSON-RPC 2.0 request: {"jsonrpc": "2.0", "id", …}',
    );
  if (params !== undefined && !isObject(params)) throw new RequestMalformedError("params must be an object");
  return { operation: method, params };
}

export class A2aDoor {
  readonly #deps: HttpParts["deps"];
  readonly #operations: A2aOperations;
  readonly #push: PushOperations;
  readonly #cards: Cards;
  readonly #feed: RunFeed;

  constructor({ deps, dispatcher }: HttpParts) {
    this.#deps = deps;
    this.#operations = new A2aOperations({ deps, dispatcher });
    this.#push = pushOperations(deps);
    this.#cards = createCards(deps, deps.version);
    this.#feed = new RunFeed(deps.engine.bus);
  }

  /** Answers a request of anybody for a card or the public key. Returns undefined for every other path. */
  async open(c: Context<Env>): Promise<Response | undefined> {
    const { path, method } = c.req;
    if (path !== KEYS_PATH && !path.endsWith(CARD_PATH)) return undefined;
    if (method !== "GET" && method !== "HEAD") return nothingHere(c, 405, "use GET");
    const missing = () => nothingHere(c, 404, "no agent has a card here; a2a.expose names them");
    return this.#answerCard(c, this.#deps.settings.a2a.expose, missing);
  }

  /** Answers a request for the card of one of these agents, or for the public key. */
  async #answerCard(
    c: Context<Env>,
    exposes: readonly string[],
    missing: () => Response,
  ): Promise<Response | undefined> {
    const { path } = c.req;
    if (path === KEYS_PATH) return c.json(await this.#cards.keys());
    if (!path.endsWith(CARD_PATH)) return undefined;
    const named = /^\/a2a\/([^/]+)\//.exec(path)?.[1] ?? exposes[0];
    const agent = this.#deps.settings.agents.find(({ id }) => id === named && exposes.includes(id));
    if (agent === undefined) return missing();
    const etag = await this.#cards.etag(agent, c.get("origin"));
    c.header("etag", etag);
    c.header("cache-control", `max-age=${CARD_MAX_SECONDS}`);
    if (c.req.header("if-none-match")?.includes(etag)) return c.body(null, 304);
    return c.json((await this.#cards.card(agent, c.get("origin"))) as object);
  }

  /** Answers a request of an authenticated client. */
  async handle(c: Context<Env>): Promise<Response> {
    const { peer } = c.get("caller");
    const hidden = () => refuse(c, fail("not_visible", "the peer does not offer this agent"));
    const card = peer && (await this.#answerCard(c, peer.exposes, hidden));
    if (card !== undefined) return card;
    const [, name = "", rest = ""] = /^\/a2a\/([^/]+)(\/.*)?$/.exec(c.req.path) ?? [];
    const agent = this.#agent(c, name);
    if (!agent.ok) return refuse(c, agent);
    const request = await this.#read(c, rest);
    if (!request.ok) return refuse(c, request);
    const { asked, binding } = request.value;
    try {
      checkVersion(c);
      this.#allow(c, asked.operation);
      const call = { caller: c.get("caller"), agentId: agent.value.id, signal: c.req.raw.signal };
      return await this.#perform(c, call, request.value);
    } catch (error) {
      // A peer sends its message again if the status says that nothing was accepted.
      const isLater = error instanceof Refused && LATER.includes(statusOf(error.failure.code));
      if (isLater && c.get("caller").peer !== undefined) return refuse(c, error.failure);
      try {
        return binding.refuse(error);
      } catch {
        return binding.refuse(new Refused(thrown(this.#deps.world, error, `${c.req.method} ${c.req.path}`)));
      }
    }
  }

  #agent(c: Context<Env>, name: string): Result<AgentSettings> {
    const { settings } = this.#deps;
    const caller = c.get("caller");
    const agent = agentsFor(settings, caller).find(({ id }) => id === name);
    const exposed = caller.peer?.exposes ?? settings.a2a.expose;
    return agent !== undefined && exposed.includes(agent.id) ? ok(agent) : missing(name);
  }

  /** Reads the request: JSON-RPC at the agent's address, HTTP+JSON below it. */
  async #read(c: Context<Env>, rest: string): Promise<Result<Request>> {
    const { redactor } = this.#deps.world;
    // The scope is checked first, so that the body of a caller without any is never read.
    const allowed = needScope(c.get("caller"), "A2A", "operator.read");
    if (!allowed.ok) return allowed;
    const body = c.req.method === "POST" ? await readBody(c, BODY_MAX_BYTES) : ok({});
    if (!body.ok) return body;
    if (rest === "" || rest === "/") {
      if (c.req.method !== "POST") return fail("invalid_argument", "use POST for JSON-RPC");
      const binding = jsonRpcBinding(rpcId(body.value), redactor);
      try {
        return ok({ asked: rpcAsked(body.value), binding });
      } catch (error) {
        return ok({ asked: { operation: "", params: error }, binding });
      }
    }
    const asked = routed(c.req.method, rest, { query: c.req.query(), body: fieldsOf(body.value) });
    if (asked === undefined)
      return fail("unknown_method", `unknown route ${c.req.method} ${quoted(rest, 80)}`);
    return ok({ asked, binding: httpJsonBinding(redactor) });
  }

  #allow(c: Context<Env>, operation: string): void {
    const allowed = needScope(c.get("caller"), `A2A ${operation}`, SCOPES[operation] ?? "operator.read");
    if (!allowed.ok) throw new Refused(allowed);
    if (c.get("caller").peer !== undefined && !OF_PEERS.includes(operation))
      throw new Refused(fail("missing_scope", `a peer cannot use ${quoted(operation, 64)}`));
  }

  async #perform(c: Context<Env>, call: A2aCall, { asked, binding }: Request): Promise<Response> {
    const { operation, params } = asked;
    switch (operation) {
      case "SendMessage":
        return binding.answer(await this.#operations.sendMessage(call, params));
      case "GetTask":
        return binding.answer(await this.#operations.getTask(call, params));
      case "ListTasks":
        return binding.answer(await this.#operations.listTasks(call, params));
      case "CancelTask":
        return binding.answer(await this.#operations.cancelTask(call, params));
      case "SendStreamingMessage": {
        const { run } = await this.#operations.accept(call, params);
        return this.#stream(c, call, { run, task: await this.#operations.taskOf(call, run) }, binding);
      }
      case "SubscribeToTask":
        return this.#stream(c, call, await this.#operations.followed(call, params), binding, true);
      case "GetExtendedAgentCard":
        throw new UnsupportedOperationError("there is no extended card");
      default: {
        const push = Object.hasOwn(this.#push, operation) ? this.#push[operation] : undefined;
        if (push !== undefined) {
          if (!canPush(this.#deps.settings)) throw new PushNotificationNotSupportedError();
          const ownRun = (taskId: string) => this.#operations.ownRun(call, taskId);
          return binding.answer(await push(params, ownRun), operation.startsWith("Create"));
        }
        if (params instanceof Error) throw params;
        throw new Refused(fail("unknown_method", `unknown A2A method ${quoted(operation, 64)}`));
      }
    }
  }

  /** `isJoined`: the task may already ask. Its stream continues until it has ended or asks something else. */
  #stream(
    c: Context<Env>,
    call: A2aCall,
    { run, task }: FollowedTask,
    binding: Binding,
    isJoined = false,
  ): Response {
    const known = isJoined ? task.status?.message?.messageId : undefined;
    const { world } = this.#deps;
    const gone = new AbortController();
    const following = { ...call, signal: AbortSignal.any([call.signal, gone.signal]) };
    let last: FollowedTask["task"] | undefined;
    const followRun = async () => {
      try {
        const end = await this.#operations.settled(following, run, known);
        last = await this.#operations.taskOf(call, end, { artifacts: true, history: 0 });
        return ok({ run: end, cutShort: false });
      } catch (error) {
        return error instanceof Refused ? error.failure : thrown(world, error, `following task ${run.runId}`);
      }
    };
    const shape = taskStream({ task, ended: () => last, frame: binding.frame, failed: binding.failed });
    c.header("content-type", "text/event-stream; charset=utf-8");
    // Tells proxies not to buffer the stream.
    c.header("x-accel-buffering", "no");
    // Nothing follows the task if it ended before, like that of a repeated message.
    if (isEnded(run.state)) return c.body(shape.begin());
    const body = streamRun({
      feed: this.#feed,
      clock: world.clock,
      redactor: world.redactor,
      runId: run.runId,
      shape,
      ended: followRun(),
      onGone: () => gone.abort(),
      cut: () => c.env.outgoing.destroy(),
    });
    return c.body(body);
  }
}
