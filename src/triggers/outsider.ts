// Owns what a web hook and a node have in common: which sessions somebody outside may write to, and how what
// it says becomes a run.
// OU1: patterns of keys cover sessions, and no wildcard is permission for the one session of everybody. What
//      they don't cover is answered alike whether it exists or not (I9).
// OU2: the run and a session that is made for it are one unit (I2); the send policy is asked before.

import { type Failure, fail, ok, type Result } from "../core/errors.ts";
import type { Route } from "../core/route.ts";
import type { Run, RunInput } from "../core/run.ts";
import type { Session } from "../core/session.ts";
import { isReservedKey } from "../core/session-key.ts";
import type { Settings } from "../core/settings.ts";
import type { Viewer } from "../core/visibility.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { verdictOfKey } from "../flows/access.ts";
import { insertNew } from "../flows/lifecycle.ts";
import { sendVerdict } from "../flows/party.ts";

export interface OutsiderContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** Somebody outside, with the patterns of what it may write to; without patterns it covers all. */
export interface Outsider {
  readonly viewer: Extract<Viewer, { kind: "operator" }>;
  /** The session that is its own, whatever the patterns say. */
  readonly ownKey?: string;
  /** What it is called in a refusal, and which setting says more. */
  readonly name: string;
  readonly hint: string;
}

/** The key, if the session behind it may be written to. */
export function covered(
  { engine, settings }: OutsiderContext,
  { viewer, ownKey, name, hint }: Outsider,
  key: string,
): Result<string> {
  const { patterns } = viewer;
  const isMeant = !isReservedKey(key) || patterns === undefined || patterns.includes(key);
  const allows = (): boolean => verdictOfKey({ db: engine.store.db, settings }, viewer, "send", key).allowed;
  if (key === ownKey || (isMeant && allows())) return ok(key);
  const shown = JSON.stringify(key.slice(0, 512));
  return fail("not_visible", `${name} may not write to the session ${shown}`, { hint });
}

/** A session that is not there, and is not this caller's to make. */
export function noSession(key: string, hint: string): Failure {
  return fail("session_not_found", `no session ${JSON.stringify(key)}`, { hint });
}

interface OutsideTurn {
  readonly session: Session;
  /** It is made with the run. */
  readonly isNew: boolean;
  readonly input: RunInput;
  /** 0: no limit. */
  readonly timeoutSeconds: number | undefined;
  readonly route: Route | undefined;
}

/** Accepts the run in the unit. */
export async function acceptTurn(
  { engine, settings }: OutsiderContext,
  unit: Unit,
  { session, isNew, input, timeoutSeconds = 0, route }: OutsideTurn,
): Promise<Result<Run>> {
  const verdict = sendVerdict(settings, session);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  if (isNew) await insertNew(unit, session);
  const accepted = await engine.acceptIn(unit, {
    sessionKey: session.key,
    input,
    ...(timeoutSeconds === 0 ? {} : { timeoutMs: Math.round(timeoutSeconds * 1_000) }),
    ...(route === undefined ? {} : { route }),
  });
  return accepted.ok ? ok(accepted.value.run) : accepted;
}
