// Owns the rules that web hooks and nodes share: the check of the sessions that an outside caller may write
// to, and the acceptance of its message as a run.
// OU1: key patterns cover sessions, but no wildcard covers the shared main session. An
//      uncovered session gets the same answer whether or not it exists (I9).
// One transaction writes the run and its new session (I2), after the send policy allowed it.

import { keyRulesOf, operatorKey, verdictOfKey } from "../access/access.ts";
import { optional } from "../core/optional.ts";
import { sendVerdict } from "../core/rules/send-policy.ts";
import type { Viewer } from "../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Route } from "../core/shapes/route.ts";
import type { Run, RunInput } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import { isReservedKey, mainKeyOf } from "../core/shapes/session-key.ts";
import { defaultAgent, type Settings } from "../core/shapes/settings/settings.ts";
import { quoted } from "../core/text/cut.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { insertNew } from "../flows/session/lifecycle.ts";

interface OutsideContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/**
 * An outside caller, with the patterns of the sessions that it may use. Without patterns, it may use all
 * sessions.
 */
export interface Outsider {
  readonly viewer: Extract<Viewer, { kind: "operator" }>;
  /** The caller's own session, allowed regardless of the patterns. */
  readonly ownKey?: string;
  /** The caller's name in an error, and the setting that the error mentions. */
  readonly name: string;
  readonly hint: string;
}

/** Returns the key if the caller may write to its session. */
export function covered(
  { settings }: Pick<OutsideContext, "settings">,
  { viewer, ownKey, name, hint }: Outsider,
  key: string,
): Result<string> {
  const { patterns } = viewer;
  const isMeant = !isReservedKey(key) || patterns === undefined || patterns.includes(key);
  if (key === ownKey || (isMeant && verdictOfKey({ settings }, viewer, "send", key).allowed)) return ok(key);
  const shown = quoted(key, 512);
  return fail("not_visible", `${name} may not write to the session ${shown}`, { hint });
}

/** Returns the session `to` to which a reply goes, by default the main session of the default agent. */
export function replySession(
  { settings }: Pick<OutsideContext, "settings">,
  outsider: Outsider,
  to: string | undefined,
): Result<string> {
  const named = to === undefined ? ok(mainKey(settings)) : operatorKey(settings, to);
  return named.ok ? covered({ settings }, outsider, named.value) : named;
}

/** Returns the key of the main session of the default agent. */
export function mainKey(settings: Settings): string {
  return mainKeyOf(defaultAgent(settings).id, keyRulesOf(settings));
}

/** Returns the failure for a session that does not exist and that the caller can't create. */
export function noSession(key: string, hint: string): Failure {
  return fail("session_not_found", `no session ${JSON.stringify(key)}`, { hint });
}

interface OutsideTurn {
  readonly session: Session;
  /** Whether the session is created together with the run. */
  readonly isNew: boolean;
  readonly input: RunInput;
  /** Time limit of the run; 0 means no limit. */
  readonly timeoutSeconds: number | undefined;
  /** The destination of the reply, in addition to the transcript. */
  readonly replyTo: Route | undefined;
}

/** Accepts the run in the given transaction. */
export async function acceptTurn(
  { engine, settings }: OutsideContext,
  unit: Unit,
  { session, isNew, input, timeoutSeconds = 0, replyTo }: OutsideTurn,
): Promise<Result<Run>> {
  const verdict = sendVerdict(settings, session);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  if (isNew) await insertNew(unit, session);
  const accepted = await engine.acceptIn(unit, {
    sessionKey: session.key,
    input: { ...input, ...optional({ replyTo }) },
    ...(timeoutSeconds === 0 ? {} : { timeoutMs: Math.round(timeoutSeconds * 1_000) }),
  });
  return accepted.ok ? ok(accepted.value.run) : accepted;
}
