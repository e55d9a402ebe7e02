// Defines the context of a method call, and the definition of a method. Each group of methods declares the
// dependencies that it needs.

import type { AccessContext } from "../access/access.ts";
import type { EventPayloads } from "../contract/events.ts";
import type { MethodName, ParamsOf, PayloadOf } from "../contract/methods.ts";
import type { Viewer } from "../core/rules/visibility.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { HostProgram, HostProgramEnd } from "../core/shapes/host-program.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Accepted } from "../engine/run/accept.ts";
import type { Unit } from "../engine/unit.ts";
import type { Services } from "../feature.ts";
import type { ChoiceRules } from "../triggers/choices.ts";
import type { World } from "../world.ts";
import type { Caller } from "./auth.ts";

/** Dependencies of nearly every method and HTTP route. */
export interface BasicDeps {
  readonly settings: Settings;
  readonly world: World;
  readonly engine: Engine;
}

export interface FeatureDeps extends BasicDeps, ChoiceRules {
  /** Version of this program. */
  readonly version: string;
  timeZone(): string;
  /** Sends an event to one connection. */
  tell<E extends keyof EventPayloads>(caller: Caller, event: E, payload: EventPayloads[E]): void;
  /**
   * Runs a command of this program for this gateway in a process of its own, which prints its answer as JSON.
   * Absent if that is unavailable.
   */
  runCommand?(
    words: readonly string[],
    limits: Pick<HostProgram, "outputMaxBytes" | "timeoutMs" | "signal">,
  ): Promise<HostProgramEnd>;
  readonly services?: Services | undefined;
}

/** `Deps`: the dependencies of the method's group. */
export interface CallContext<Deps extends BasicDeps = BasicDeps> {
  readonly deps: Deps;
  readonly caller: Caller;
  readonly viewer: Viewer;
  readonly access: AccessContext;
  /**
   * Aborted when the caller disconnects. A request with an idempotency key is aborted only when the gateway
   * stops, because its caller may retry it.
   */
  readonly signal: AbortSignal;
  /**
   * The id of this request, as tools see it. A retry with the same key and params has the same id, also after
   * a restart.
   */
  readonly callId: string;
  /**
   * Stores the answer under the caller's idempotency key, in the transaction that did the work. Does nothing
   * without a key.
   */
  remember(unit: Unit, answer: unknown): Promise<void>;
  /**
   * Reserves the caller's idempotency key before work that must not be done twice. `ifLost`: the answer to a
   * retry if this process dies before the work is done. Does nothing without a key.
   */
  reserve(ifLost: unknown): Promise<void>;
}

export interface Method<M extends MethodName, Deps extends BasicDeps> {
  readonly handle: (ctx: CallContext<Deps>, params: ParamsOf<M>) => Promise<Result<PayloadOf<M>>>;
  /**
   * Returns true if this request can be repeated without harm. Then its answer is not stored under its
   * idempotency key.
   */
  readonly repeats?: (params: ParamsOf<M>) => boolean;
  /** Waits until the accepted work is done, then returns the second answer. */
  readonly follow?: (ctx: CallContext<Deps>, answer: unknown) => Promise<Result<unknown>>;
}

/** Does the work of a call, and stores its answer in the same transaction. */
export async function commitAnswer<A>(
  ctx: Pick<CallContext, "deps" | "remember">,
  work: (unit: Unit) => Promise<Result<A>>,
): Promise<Result<A>> {
  return ctx.deps.engine.commit(async (unit) => {
    const done = await work(unit);
    if (done.ok) await ctx.remember(unit, done.value);
    return done;
  });
}

/** As `commitAnswer`, for work that has a transaction of its own, in which it calls `also`. */
export async function answerAfter<T, A>(
  ctx: Pick<CallContext, "remember">,
  answer: (value: T) => A,
  work: (also: (unit: Unit, value: T) => Promise<void>) => Promise<Result<T>>,
): Promise<Result<A>> {
  const done = await work((unit, value) => ctx.remember(unit, answer(value)));
  return done.ok ? ok(answer(done.value)) : done;
}

/** Fails if the run id is taken: the run belongs to its first requester, even if the text is the same. */
export function onlyFresh<T extends Pick<Accepted, "fresh">>(accepted: Result<T>): Result<T> {
  if (!accepted.ok || accepted.value.fresh) return accepted;
  return fail("idempotency_conflict", "this idempotencyKey is the id of a run that another request began", {
    hint: "Use a new key for a new request; agent.wait returns the state of that run.",
  });
}

export type Methods<M extends MethodName, Deps extends BasicDeps = BasicDeps> = {
  readonly [K in M]: Method<K, Deps>;
};
