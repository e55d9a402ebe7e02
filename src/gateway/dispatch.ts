// Dispatches a request: checks role, scope, params and idempotency key, then calls the method.
// The caller's right to the method is checked first; no method runs with invalid params.
// The same idempotency key of the same owner (a token, or a device with a token) gives the same answer, also
// after a restart. A second request of that owner with the same key is a conflict if it differs. Keys of two
// owners are independent.
// Only successful answers are stored: a refused request may be retried.
// Work that must not be done twice reserves its key first. A retry waits for the answer. If the process dies,
// a retry is answered with "outcome unknown".
// A request with a key outlives its connection: the caller may reconnect and retry it.

import { createHash } from "node:crypto";
import { operatorViewer } from "../access/access.ts";
import { coversAgent } from "../access/token.ts";
import { checkParams } from "../contract/check.ts";
import { idempotencyOf } from "../contract/idempotency.ts";
import { NODE } from "../contract/methods/parts.ts";
import { isMethod, type KernelMethodName, METHODS, type MethodName, methodOf } from "../contract/methods.ts";
import { isLenient } from "../contract/protocol.ts";
import { canonicalJson } from "../core/json.ts";
import { type AdminPart, expandScopes, hasScope } from "../core/rules/scopes.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { settingsNow } from "../core/shapes/settings/live.ts";
import type { TokenScope } from "../core/shapes/settings/settings.ts";
import { quoted } from "../core/text/cut.ts";
import { nearestName } from "../core/text/nearest.ts";
import { throughDoubt, untilStored } from "../engine/run/until-stored.ts";
import type { Unit } from "../engine/unit.ts";
import { FEATURES } from "../features.ts";
import {
  type KeyedCall,
  ownedKey,
  recallAnswer,
  rememberAnswer,
  reserveKey,
  settleKey,
} from "../store/queries/idempotency.ts";
import { isAlive } from "../store/queries/processes.ts";
import { pause } from "../world/pause.ts";
import { attentionMethods } from "./attention/attention.ts";
import { type Caller, keyOwnerOf } from "./auth.ts";
import type { BasicDeps, CallContext, FeatureDeps, Method } from "./call.ts";
import { agentMethods } from "./methods/agent.ts";
import { agentSettingsMethods, type DescribeDeps } from "./methods/agents.ts";
import { chainMethods } from "./methods/chains/chains.ts";
import type { RecordDeps } from "./methods/chains/record.ts";
import { type ChannelDeps, channelMethods } from "./methods/channels.ts";
import { chatMethods } from "./methods/chat.ts";
import type { CommandDeps } from "./methods/commands.ts";
import { type ConfigDeps, configMethods } from "./methods/configuration.ts";
import { deliveryMethods } from "./methods/deliveries.ts";
import { type DemoDeps, demoMethods } from "./methods/demo.ts";
import { historyMethods } from "./methods/history.ts";
import { needEverySession, operationMethods } from "./methods/operations.ts";
import { accessMethods } from "./methods/rights/access.ts";
import { type DeviceDeps, deviceMethods } from "./methods/rights/devices.ts";
import { labelMethods } from "./methods/rights/labels.ts";
import { permissionMethods } from "./methods/rights/permissions.ts";
import { type TokenDeps, tokenMethods } from "./methods/rights/tokens.ts";
import { type ServerListDeps, serverMethods } from "./methods/servers.ts";
import { type SessionDeps, sessionMethods } from "./methods/sessions.ts";
import { type SystemDeps, systemMethods } from "./methods/system.ts";
import { type ToolDeps, toolMethods } from "./methods/tools.ts";
import { type UpkeepDeps, upkeepMethods } from "./methods/upkeep.ts";
import { sessionTokenMethods } from "./session-tokens.ts";
import type { Answer } from "./socket/connection.ts";
import { callInForm, type FormFacts } from "./version-4/form.ts";
import { formOf, wayInstead } from "./version-4/forms.ts";
import { lenientParams } from "./version-4/params.ts";

export type MethodDeps = DescribeDeps &
  ChannelDeps &
  CommandDeps &
  ConfigDeps &
  FeatureDeps &
  DemoDeps &
  DeviceDeps &
  RecordDeps &
  BasicDeps &
  ServerListDeps &
  SessionDeps &
  SystemDeps &
  TokenDeps &
  ToolDeps &
  UpkeepDeps;

const HANDLERS: { readonly [M in KernelMethodName]: Method<M, MethodDeps> } = {
  ...systemMethods,
  ...agentSettingsMethods,
  ...sessionMethods,
  ...chatMethods,
  ...historyMethods,
  ...agentMethods,
  ...toolMethods,
  ...deliveryMethods,
  ...attentionMethods,
  ...permissionMethods,
  ...chainMethods,
  ...accessMethods,
  ...labelMethods,
  ...channelMethods,
  ...demoMethods,
  ...operationMethods,
  ...configMethods,
  ...upkeepMethods,
  ...serverMethods,
  ...deviceMethods,
  ...tokenMethods,
  ...sessionTokenMethods,
};

/**
 * Methods that a pass may call, over WebSocket and HTTP. They concern its session and the session's tools.
 */
const PASS_METHODS: readonly string[] = ["health", "sessions.resolve", "tools.catalog", "tools.invoke"];

/** A request that is not a protocol method, such as an HTTP route. It follows the rules of a method. */
interface DoorRequest<T> {
  /** The name under which the request's idempotency key is stored. */
  readonly name: string;
  readonly params: object;
  readonly idempotencyKey?: string;
  handle(ctx: CallContext): Promise<Result<T>>;
}

export interface Dispatcher {
  /** `protocol`: version of a WebSocket client, which decides whether unknown params are refused. */
  call(
    caller: Caller,
    method: string,
    params: unknown,
    signal: AbortSignal,
    protocol?: number,
  ): Promise<Answer>;
  /** Runs a request of a caller whose scope was checked. */
  perform<T>(caller: Caller, request: DoorRequest<T>, signal: AbortSignal): Promise<Result<T>>;
  /** Aborted when the gateway stops answering requests. */
  readonly stopped: AbortSignal;
  /** Aborts the requests with a key that continue after their callers disconnected. */
  close(): void;
}

function mayCall(caller: Caller, method: string): Result<MethodName> {
  if (!isMethod(method)) {
    const hint = wayInstead(method);
    if (hint !== undefined)
      return fail("unknown_method", `there is no method ${JSON.stringify(method)}`, { hint });
    const nearest = nearestName(method, Object.keys(METHODS));
    const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
    return fail("unknown_method", `unknown method ${JSON.stringify(method)}${meant}`);
  }
  const { scope, part, outlivesToken, everySession } = methodOf(method);
  if (scope === NODE) {
    if (caller.nodeId !== undefined) return ok(method);
    return fail("missing_scope", `"${method}" is for nodes: connections of paired devices with role "node"`);
  }
  if (caller.role === "node") {
    return fail("missing_scope", `a connection with role "node" may call node methods only, not "${method}"`);
  }
  // An access token must not create things that outlive it (AU6 of auth.ts).
  if (caller.accessToken !== undefined && outlivesToken) {
    return fail("missing_scope", `an access token cannot call "${method}", whose effect outlives it`, {
      hint: "Use a token of the configuration (gateway.auth.tokens).",
    });
  }
  const allowed = needScope(caller, method, scope, part);
  const covered = everySession === true && allowed.ok ? needEverySession(caller, method) : allowed;
  return covered.ok ? ok(method) : covered;
}

/** Refuses a caller whose token lacks a scope. `part`: a part of the scope that is enough. */
export function needScope(caller: Caller, name: string, needed: TokenScope, part?: AdminPart): Result<void> {
  if (caller.onlyAs !== undefined) {
    const { sessionKey } = caller.onlyAs;
    return fail("missing_scope", `this token is valid for MCP requests of session ${sessionKey} only`);
  }
  if (caller.actsAs !== undefined && !PASS_METHODS.includes(name)) {
    const text = `this token is the pass of one session: it may call ${PASS_METHODS.join(", ")} only`;
    return fail("missing_scope", text);
  }
  if (hasScope(caller.scopes, needed)) return ok(undefined);
  if (part !== undefined && caller.parts?.includes(part) === true) return ok(undefined);
  return fail("missing_scope", `missing scope: ${needed}`, {
    hint: `"${name}" requires it; gateway.auth.tokens[].scopes sets a token's scopes.`,
    details: { missingScope: needed },
  });
}

/** Returns the caller with the method's scope, if only a part of that scope admitted it. */
function asAdmitted(caller: Caller, name: MethodName): Caller {
  const { scope, part } = methodOf(name);
  if (scope === NODE || part === undefined || hasScope(caller.scopes, scope)) return caller;
  return { ...caller, scopes: expandScopes([scope]) };
}

/** Refuses a token that covers no session of the named agent, whether the agent exists or not. */
function checkAgent<T extends object>(caller: Caller, params: Result<T>): Result<T> {
  const agentId: unknown = params.ok ? Reflect.get(params.value, "agentId") : undefined;
  if (typeof agentId !== "string" || coversAgent(caller, agentId.trim().toLowerCase())) return params;
  return fail("not_visible", `the token covers no session of the agent ${quoted(agentId, 64)}`, {
    hint: "See gateway.auth.tokens[].sessions.",
  });
}

interface UnderWay {
  readonly call: KeyedCall;
  readonly answer: Promise<Result<unknown>>;
}

type Work = () => Promise<Result<unknown>>;
/** The context of a call, without the functions for its idempotency key. */
type BaseContext = Omit<CallContext<MethodDeps>, "remember" | "reserve">;

/** Used for a call without an idempotency key: nothing is stored. */
const NO_KEY = { remember: async () => {}, reserve: async () => {} };

/** Interval for polling a key that another process works on. */
const ELSEWHERE_PAUSE_MS = 200;

/** Thrown to roll back the work of this process, because another process has answered or reserved the key. */
class AnsweredElsewhere extends Error {}

const CONFLICT = fail("idempotency_conflict", "this idempotencyKey was used for another request", {
  hint: "Use a new key for a new request; a key is for one method with one set of params.",
});

/**
 * Waits until no other process works on this key, then returns its stored answer. Returns undefined if none
 * is stored.
 */
async function settledAnswer(
  { engine, world }: Pick<BasicDeps, "engine" | "world">,
  keyed: KeyedCall,
  signal: AbortSignal,
): Promise<Result<unknown> | undefined> {
  const { db } = engine.store;
  while (!signal.aborted) {
    const known = await recallAnswer(db, keyed);
    if (known === "none") return undefined;
    if (known === "conflict") return CONFLICT;
    const { answer, begunBy } = known;
    if (begunBy === undefined) return ok(answer);
    // If this process itself reserved the key, its work has ended without an answer: `createOnce` waits for
    // work in progress.
    const isElsewhere = begunBy !== engine.processId && (await isAlive(db, begunBy));
    if (isElsewhere) await pause(world.clock, ELSEWHERE_PAUSE_MS, signal);
    else await engine.commit((unit) => settleKey(unit.tx, keyed, begunBy));
  }
  return fail("shutting_down", "the gateway is stopping; try again in a moment");
}

/**
 * Returns a function that does the work of a keyed call once: a concurrent or later retry gets the same
 * answer.
 */
function createOnce(
  deps: Pick<BasicDeps, "engine" | "world">,
  signal: AbortSignal,
): (keyed: KeyedCall, work: Work) => Promise<Result<unknown>> {
  const underWay = new Map<string, UnderWay>();
  return async (keyed, work) => {
    const stored = ownedKey(keyed);
    const busy = underWay.get(stored);
    if (busy !== undefined) {
      const isSame = busy.call.method === keyed.method && busy.call.paramsHash === keyed.paramsHash;
      return isSame ? busy.answer : CONFLICT;
    }
    const recall = async (otherwise: Work): Promise<Result<unknown>> => {
      return (await settledAnswer(deps, keyed, signal)) ?? otherwise();
    };
    const ask: Work = () =>
      recall(async () => {
        const done = await work();
        // The request may have failed because another process handled it at the same time.
        return done.ok || signal.aborted ? done : recall(async () => done);
      }).catch((error: unknown) => {
        if (error instanceof AnsweredElsewhere) return recall(async () => CONFLICT);
        throw error;
      });
    const answer = throughDoubt(deps.world, signal, ask);
    underWay.set(stored, { call: keyed, answer });
    try {
      return await answer;
    } finally {
      underWay.delete(stored);
    }
  };
}

/**
 * Runs a request with a key. A successful answer is stored in the transaction that did the work, or in a
 * separate one. If the work fails, a reserved key keeps the answer that was given to `reserve`.
 */
function underKey<T>(
  once: ReturnType<typeof createOnce>,
  base: BaseContext,
  keyed: KeyedCall,
  handle: (ctx: CallContext<MethodDeps>) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { engine, world } = base.deps;
  const kept: { remembered: boolean; ifLost?: { readonly answer: unknown } } = { remembered: false };
  const remember = async (unit: Unit, answer: unknown): Promise<void> => {
    if (!(await rememberAnswer(unit.tx, keyed, answer, unit.now))) throw new AnsweredElsewhere();
    kept.remembered = true;
  };
  const reserve = async (ifLost: unknown): Promise<void> => {
    const { processId } = engine;
    await throughDoubt(world, base.signal, () =>
      engine.commit(async ({ tx, now }) => {
        const isOurs = await reserveKey(tx, keyed, { ifLost, at: now, processId });
        if (!isOurs) throw new AnsweredElsewhere();
      }),
    );
    kept.ifLost = { answer: ifLost };
  };
  const finish = async (first?: Result<T>): Promise<void> => {
    const { ifLost, remembered } = kept;
    const answer = first?.ok === true ? { answer: first.value } : ifLost;
    if (remembered || answer === undefined) return;
    const commit = () => engine.commit((unit) => remember(unit, answer.answer));
    await (ifLost === undefined ? commit() : untilStored(world, base.signal, commit));
  };
  return once(keyed, async () => {
    kept.remembered = false;
    let first: Result<T>;
    try {
      first = await handle({ ...base, remember, reserve });
    } catch (error) {
      if (!(error instanceof AnsweredElsewhere)) await finish();
      throw error;
    }
    await finish(first);
    return first;
  }) as Promise<Result<T>>;
}

/**
 * Does the work of a request that changes data and has no key. Its answer is stored under a generated key,
 * where a repeated attempt finds it if the database's reply to the commit was lost. `work` gets the function
 * that stores the answer.
 */
export function answeredOnce<T>(
  { world, engine }: Pick<BasicDeps, "world" | "engine">,
  signal: AbortSignal,
  own: KeyedCall,
  work: (remember: CallContext["remember"]) => Promise<Result<T>>,
): Promise<Result<T>> {
  const remember = async (unit: Unit, answer: unknown): Promise<void> => {
    if (!(await rememberAnswer(unit.tx, own, answer, unit.now))) throw new AnsweredElsewhere();
  };
  const ask = async (): Promise<Result<T>> => {
    const known = await recallAnswer(engine.store.db, own);
    return typeof known === "object" ? ok(known.answer as T) : work(remember);
  };
  return throughDoubt(world, signal, async () => {
    try {
      return await ask();
    } catch (error) {
      // The commit of an earlier attempt was still in progress, and has succeeded now.
      if (error instanceof AnsweredElsewhere) return ask();
      throw error;
    }
  });
}

function formFacts({ settings, engine, world }: MethodDeps): FormFacts {
  const lastLogLine = world.logTail?.last() ?? 0;
  return { settings: settingsNow(settings), processId: engine.processId, lastLogLine };
}

function contextMaker(deps: MethodDeps) {
  const { db } = deps.engine.store;
  let steady = { deps, access: { db, settings: deps.settings } };
  return (caller: Caller, signal: AbortSignal): BaseContext => {
    // A request keeps the settings with which it begins (LS1 of core/shapes/settings/live.ts).
    const settings = settingsNow(deps.settings);
    if (steady.deps.settings !== settings) steady = { deps: { ...deps, settings }, access: { db, settings } };
    const viewer = operatorViewer(caller.scopes, caller.patterns);
    return { ...steady, caller, viewer, signal, callId: `operator:${deps.world.ids.uuid()}` };
  };
}

export function createDispatcher(deps: MethodDeps): Dispatcher {
  const stop = new AbortController();
  const once = createOnce(deps, stop.signal);
  const contextOf = contextMaker(deps);

  const outliving = (base: BaseContext, keyed: KeyedCall) => ({
    ...base,
    signal: stop.signal,
    callId: callIdOf(keyed),
  });
  const runKeyed = <T>(
    base: BaseContext,
    keyed: KeyedCall,
    handle: (ctx: CallContext<MethodDeps>) => Promise<Result<T>>,
  ): Promise<Result<T>> => underKey(once, outliving(base, keyed), keyed, handle);

  const run = async <M extends MethodName>(
    caller: Caller,
    name: M,
    given: unknown,
    signal: AbortSignal,
    protocol?: number,
  ): Promise<Answer> => {
    const read = isLenient(protocol) ? lenientParams(deps, name, given) : checkParams(name, given);
    const params = checkAgent(caller, await read);
    if (!params.ok) return { result: params };
    // The first call of a feature's method loads its code.
    const kernel: Readonly<Record<string, unknown>> = HANDLERS;
    const theirs = async () =>
      (await FEATURES.find(({ methods = {} }) => Object.hasOwn(methods, name))?.handlers?.())?.[name];
    const found = kernel[name] ?? (await theirs());
    if (found === undefined) throw new Error(`the method ${name} has no handler`);
    const method = found as Method<M, MethodDeps>;
    const base = contextOf(asAdmitted(caller, name), signal);
    const keyed = method.repeats?.(params.value) === true ? undefined : keyedCall(caller, name, params.value);
    if (keyed !== undefined) {
      const result = await runKeyed(base, keyed, (ctx) => method.handle(ctx, params.value));
      if (!result.ok || method.follow === undefined) return { result };
      const later = { ...outliving(base, keyed), ...NO_KEY };
      return { result, later: method.follow(later, result.value) };
    }
    if (idempotencyOf(name) === "none" || method.repeats?.(params.value) === true)
      return { result: await method.handle({ ...base, ...NO_KEY }, params.value) };
    const own = callUnder(base.callId, caller, name, params.value);
    const handle = (remember: CallContext["remember"]) =>
      method.handle({ ...base, ...NO_KEY, remember }, params.value);
    return { result: await answeredOnce(deps, signal, own, handle) };
  };

  return {
    async call(caller, method, params, signal, protocol) {
      const form = isLenient(protocol) ? await formOf(method) : undefined;
      const known = mayCall(caller, form?.method ?? method);
      if (!known.ok) return { result: known };
      const ask = async (name: MethodName, given: unknown): Promise<Answer> => {
        const may = name === known.value ? known : mayCall(caller, name);
        return may.ok ? run(caller, name, given, signal, protocol) : { result: may };
      };
      return form === undefined ? ask(known.value, params) : callInForm(form, params, formFacts(deps), ask);
    },
    async perform<T>(caller: Caller, request: DoorRequest<T>, signal: AbortSignal) {
      const { name, params, idempotencyKey, handle } = request;
      const base = contextOf(caller, signal);
      if (idempotencyKey === undefined) return handle({ ...base, ...NO_KEY });
      return runKeyed(base, callUnder(idempotencyKey, caller, name, params), handle);
    },
    stopped: stop.signal,
    close: () => stop.abort(),
  };
}

function callIdOf({ key, owner, method, paramsHash }: KeyedCall): string {
  const whole = JSON.stringify([key, owner, method, paramsHash]);
  return `operator:${createHash("sha256").update(whole).digest("hex").slice(0, 32)}`;
}

function keyedCall(caller: Caller, method: string, params: object): KeyedCall | undefined {
  const { idempotencyKey: key, ...rest } = params as { idempotencyKey?: string };
  if (key === undefined) return undefined;
  return callUnder(key, caller, method, rest);
}

/** Returns the call with this key, as its answer is stored. */
export function callUnder(key: string, caller: Caller, method: string, params: object): KeyedCall {
  const paramsHash = createHash("sha256").update(canonicalJson(params)).digest("hex");
  // Older versions stored a node's keys with the node's id as a prefix.
  const before = caller.nodeId === undefined ? key : `node:${caller.nodeId}:${key}`;
  const older = { key: before, caller: caller.id };
  return { key, owner: keyOwnerOf(caller), older, method, paramsHash };
}
