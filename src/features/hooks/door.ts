// Serves incoming web hooks: POST /hooks/agent, /hooks/wake, and /hooks/<path> of a mapping.
// The sender is authenticated before any work, and with a token before the body is read.
// The answer 202 is sent once the run is on disk (I2), without waiting for the run's end.
// HO3: a repeated delivery starts no second run and gets the first answer. It is refused if its body differs.
//      A signed body is processed once, whatever its headers are, because headers are not signed.
// HO4: no header, body or secret is written to a log.

import type { Context } from "hono";
import { operatorViewer } from "../../access/access.ts";
import type { BodyAnswerOf } from "../../contract/bodies.ts";
import { readJson } from "../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { LAST, WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { TokenScope } from "../../core/shapes/settings/settings.ts";
import type { Unit } from "../../engine/unit.ts";
import type { Caller } from "../../gateway/auth.ts";
import type { CallContext } from "../../gateway/call.ts";
import type { RouteParts } from "../../gateway/http/http.ts";
import {
  bearer,
  type Door,
  type Env,
  nothingHere,
  readBytes,
  refuse,
  remoteOf,
} from "../../gateway/http/request.ts";
import { recallAnswer, rememberAnswer } from "../../store/queries/idempotency.ts";
import { acceptWake } from "../../triggers/wake.ts";
import { createHookGuard, digestOf, signatureCheck } from "./proof.ts";
import { deliveryOf, githubEvent, readAgentBody, readWakeBody, startsRun } from "./request.ts";
import { type HookMapping, type HookSettings, messageOf, pathOf } from "./settings.ts";
import { renderTemplate } from "./template.ts";
import { acceptHook, type HookTurn } from "./turns.ts";

/** Maximum bytes of a request's body. */
const BODY_MAX_BYTES = 1024 * 1024;
const PATH = /^\/hooks\/([a-z0-9][a-z0-9_-]{0,63})$/;
const TOKEN_PARAM = /token|secret|key|auth|password/i;
const SCOPES: readonly TokenScope[] = ["operator.write", "operator.read"];

type Accepted = Omit<BodyAnswerOf<"POST /hooks/agent" | "POST /hooks/wake">, "ok">;

/** An authenticated request of a web hook. */
interface Known {
  /** `agent`, `wake`, or the id of a mapping. */
  readonly name: string;
  readonly raw: Uint8Array;
  readonly body: unknown;
  readonly header: (name: string) => string | undefined;
  readonly signal: AbortSignal;
}

/** The work of a request, and the id by which a retry is recognised. */
interface Work {
  /** If absent, each request is a new one. */
  readonly delivery: string | undefined;
  readonly params: object;
  handle(ctx: CallContext): Promise<Result<Accepted>>;
}

function answerOf({ runId, sessionKey }: Run): Accepted {
  return { runId, sessionKey };
}

/** Checks the form of a request before its sender is authenticated. */
function checkForm(c: Context<Env>): Failure | undefined {
  const named = [...new URL(c.req.url).searchParams.keys()].find((name) => TOKEN_PARAM.test(name));
  if (named !== undefined) {
    return fail("invalid_argument", "a token must not be part of the URL, since logs and proxies keep it", {
      hint: "Create a new token, and send it as Authorization: Bearer or in the header x-parley-token.",
    });
  }
  const type = (c.req.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === "application/json" || /^application\/[\w.-]+\+json$/.test(type)) return undefined;
  return fail("invalid_argument", "a web hook's content type must be application/json", {
    hint: "At GitHub: Content type, application/json. With curl: -H 'content-type: application/json'.",
  });
}

class HookDoor {
  readonly #parts: RouteParts;
  readonly #guard: ReturnType<typeof createHookGuard>;
  /** The token of the last warning. */
  #warned: string | undefined;

  constructor(parts: RouteParts) {
    this.#parts = parts;
    const { settings, world, token } = parts.deps;
    const gatewayTokens = [token, ...settings.gateway.tokens.map((one) => one.token)];
    this.#guard = createHookGuard(world.clock, gatewayTokens);
  }

  /** Returns the newest settings. Warns once about a token that is not valid. */
  #settings(): HookSettings {
    const { settings, world } = this.#parts.deps;
    const { hooks } = settings;
    if (hooks.token !== this.#warned && !this.#guard.isUsable(hooks)) {
      world.log.warn({}, "hooks.token is also a token of the gateway, so it is not valid for web hooks");
      this.#warned = hooks.token;
    }
    return hooks;
  }

  async handle(c: Context<Env>): Promise<Response> {
    const hooks = this.#settings();
    if (!hooks.enabled) return nothingHere(c, 404, "web hooks are disabled: hooks.enabled is false");
    const name = PATH.exec(c.req.path)?.[1];
    const mapping = hooks.mappings.find((one) => pathOf(one) === name);
    if (name === undefined || (mapping === undefined && name !== "agent" && name !== "wake")) {
      return nothingHere(
        c,
        404,
        "not found; there are: POST /hooks/agent, POST /hooks/wake, POST /hooks/<path of a mapping>",
      );
    }
    if (c.req.method !== "POST") {
      c.header("allow", "POST");
      return nothingHere(c, 405, "a web hook must be a POST request");
    }
    const form = checkForm(c);
    if (form !== undefined) return refuse(c, form);
    const known = await this.#readRequest(c, name, mapping);
    if (!known.ok) return refuse(c, known);
    if (mapping !== undefined) return this.#answerMapped(c, known.value, mapping);
    const work = await (name === "agent" ? this.#agentWork(known.value) : this.#wakeWork(known.value));
    return work.ok ? this.#perform(c, known.value, work.value) : refuse(c, work);
  }

  /**
   * Authenticates and reads the request. A token is checked before the body is read, a signature afterwards.
   */
  async #readRequest(
    c: Context<Env>,
    name: string,
    mapping: HookMapping | undefined,
  ): Promise<Result<Known>> {
    const header = (one: string): string | undefined => c.req.header(one);
    let raw: Result<Uint8Array>;
    if (mapping === undefined || mapping.preset === "token") {
      const { hooks } = this.#parts.deps.settings;
      const admitted = this.#guard.admit(hooks, remoteOf(c), bearer(c) ?? header("x-parley-token"));
      if (!admitted.ok) return admitted;
      raw = await readBytes(c, BODY_MAX_BYTES);
    } else {
      const check = signatureCheck(mapping, header);
      if (!check.ok) return check;
      raw = await this.#parts.unproven.read(c, BODY_MAX_BYTES, async (body) => {
        const fits = check.value(body);
        return fits.ok ? ok(body) : fits;
      });
    }
    if (!raw.ok) return raw;
    const read = readJson(raw.value);
    if (!read.ok) return read;
    const body = read.value;
    if (body === undefined) return fail("invalid_argument", "the body is not valid JSON");
    return ok({ name: mapping?.id ?? name, raw: raw.value, body, header, signal: c.req.raw.signal });
  }

  async #agentWork({ body, header }: Known): Promise<Result<Work>> {
    const read = await readAgentBody(body);
    if (!read.ok) return read;
    const delivery = deliveryOf(undefined, header, body);
    if (!delivery.ok) return delivery;
    const { idempotencyKey: _, deliver, channel, to, accountId, threadId, ...rest } = read.value;
    const turn = { ...rest, ...(deliver === true ? { deliver: { channel, to, accountId, threadId } } : {}) };
    const patterns = this.#parts.deps.settings.hooks.allowedSessionKeys;
    const elsewhere = deliver === true && channel !== undefined && channel !== WEBCHAT && channel !== LAST;
    const params = {
      ...rest,
      deliver: deliver === true,
      to,
      ...(elsewhere ? { channel, accountId, threadId } : {}),
    };
    return ok({ delivery: delivery.value, params, handle: (ctx) => this.#run(ctx, turn, patterns) });
  }

  async #wakeWork({ body, header }: Known): Promise<Result<Work>> {
    const read = await readWakeBody(body);
    if (!read.ok) return read;
    const delivery = deliveryOf(undefined, header, body);
    if (!delivery.ok) return delivery;
    const { text, mode = "now" } = read.value;
    const handle = async (ctx: CallContext): Promise<Result<Accepted>> => {
      const run = await acceptWake(this.#parts.deps, { text, mode, guest: true, also: remembering(ctx) });
      return run.ok ? ok(answerOf(run.value)) : run;
    };
    return ok({ delivery: delivery.value, params: { text, mode }, handle });
  }

  async #run(
    ctx: CallContext,
    turn: Omit<HookTurn, "also">,
    patterns: readonly string[] | undefined,
    once?: (unit: Unit) => Promise<Result<void>>,
  ): Promise<Result<Accepted>> {
    const caller = operatorViewer(SCOPES, patterns);
    const run = await acceptHook(this.#parts.deps, caller, { ...turn, also: remembering(ctx, once) });
    return run.ok ? ok(answerOf(run.value)) : run;
  }

  /** Handles a request to a hook that has a mapping. */
  async #answerMapped(c: Context<Env>, known: Known, mapping: HookMapping): Promise<Response> {
    const { body, header, raw } = known;
    const isSigned = mapping.preset !== "token";
    let event: string | undefined;
    if (mapping.preset === "github") {
      const named = githubEvent(header);
      if (!named.ok) return refuse(c, named);
      event = named.value;
      if (event === "ping") return c.json({ ok: true, pong: true });
      if (!startsRun(mapping.match.events, event, body)) return c.json({ ok: true, ignored: event });
    }
    const given = deliveryOf(mapping, header, body);
    if (!given.ok) return refuse(c, given);
    const digest = digestOf(raw);
    const delivery = given.value ?? (isSigned ? digest : undefined);
    const message = renderTemplate(messageOf(mapping), { body, event, delivery: given.value });
    const once = isSigned ? (unit: Unit) => claimBody(unit, mapping.id, digest) : undefined;
    const { id, name = id, sessionKey, model, thinking, timeoutSeconds } = mapping;
    const { channel, to = "main", accountId, threadId } = mapping;
    const agentId = mapping.agentId?.toLowerCase();
    const deliver = mapping.deliver ? { channel, to, accountId, threadId } : undefined;
    const turn = { source: id, message, name, agentId, sessionKey, deliver, model, thinking, timeoutSeconds };
    return this.#perform(c, known, {
      delivery,
      params: { digest },
      handle: (ctx) => this.#run(ctx, turn, undefined, once),
    });
  }

  async #perform(c: Context<Env>, known: Known, work: Work): Promise<Response> {
    const { name, signal } = known;
    // The name identifies the caller, so that a changed token or secret does not turn a known delivery into a
    // new one.
    const caller: Caller = { id: `hook:${name}`, role: "operator", scopes: SCOPES };
    const keyed =
      work.delivery === undefined ? {} : { idempotencyKey: `hook:${name}:${digestOf(work.delivery)}` };
    const request = { name: `hooks.${name}`, params: work.params, ...keyed, handle: work.handle };
    const done = await this.#parts.dispatcher.perform(caller, request, signal);
    return done.ok ? c.json({ ok: true, ...done.value }, 202) : refuse(c, done);
  }
}

/**
 * Returns a function that stores the answer, and the rows that `once` writes, in the transaction that accepts
 * the run.
 */
function remembering(ctx: CallContext, once?: (unit: Unit) => Promise<Result<void>>) {
  return async (unit: Unit, run: Run): Promise<Result<void>> => {
    // Store the answer first: if another process got the same delivery, this throws, and the answer of that
    // process is returned.
    await ctx.remember(unit, answerOf(run));
    return once === undefined ? ok(undefined) : once(unit);
  };
}

/** Claims a signed body for this delivery; fails if another delivery used it. */
async function claimBody(unit: Unit, id: string, digest: string): Promise<Result<void>> {
  const [owner, key] = [`hook:${id}`, `hook-body:${id}:${digest}`];
  const call = { key, owner, older: { key, caller: owner }, method: "hooks.body", paramsHash: digest };
  const isNew = (await recallAnswer(unit.tx, call)) === "none";
  if (isNew && (await rememberAnswer(unit.tx, call, {}, unit.now))) return ok(undefined);
  return fail("idempotency_conflict", "this signed body was already accepted from another delivery", {
    hint: "Do not send it again. If the sender may send identical bodies, add an id or the time to each.",
  });
}

export function createDoor(parts: RouteParts): Door {
  const door = new HookDoor(parts);
  return (c) => door.handle(c);
}
