// Owns the rights of a scheduled job or a paired node: it has the current rights of the token that created or
// paired it. Web hooks have no creator: only the configuration defines them.
// CT1: a job or a node starts a run only while its creator's token may access the session, its agent and
//      the destination of its replies. This is checked at every turn and every event (I13).
// CT2: the stored id of a token can't be used as a token. Nothing is stored for the gateway's own
//      token: its jobs and nodes keep all rights, even if that token changes.

import { createHash } from "node:crypto";
import { type AccessContext, accessRulesOf, maySpeakAs, operatorViewer } from "../access/access.ts";
import { decideAccess, type Viewer } from "../core/rules/visibility.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Route } from "../core/shapes/route.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Unit } from "../engine/unit.ts";
import { resolvePlace } from "../flows/delivery/destination.ts";

/** Returns the id of a token: the same for each of its uses, and useless for authentication. */
export function tokenId(token: string): string {
  return createHash("sha256").update(`caller:${token}`).digest("hex").slice(0, 32);
}

/** Writes more rows in the transaction of the change, for example the answer under an idempotency key. */
export type Also<T> = (unit: Unit, done: T) => Promise<void>;

/** Words for a failure: of the creator, of the agent, and about what helps. */
export interface CreatorWords {
  /** Like `created this job`. */
  readonly made: string;
  /** Like `as which the job runs`. */
  readonly runs: string;
  /** Like `the sessions of jobs, cron:<id>`. Default: the session's key. */
  readonly sessions?: string;
  readonly hint: string;
}

/** A run that a job or a node is about to start. */
export interface CreatedTurn {
  readonly words: CreatorWords;
  /** The id of the creator's token. Absent if the job or node was created with the gateway's own token. */
  readonly createdBy?: string | undefined;
  readonly sessionKey: string;
  readonly agentId: string;
  /** The destination of the run's reply, in addition to the transcript. */
  readonly deliver?: Route | undefined;
}

/** Returns the creator of a job or a node, or undefined for the gateway's own token. */
export function creatorOf(settings: Settings, callerId: string): string | undefined {
  return settings.gateway.tokens.some(({ token }) => tokenId(token) === callerId) ? callerId : undefined;
}

/** Returns the rights of a creator, or undefined if its token was removed from the configuration. */
export function creatorViewer(settings: Settings, createdBy: string): Viewer | undefined {
  const known = settings.gateway.tokens.find(({ token }) => tokenId(token) === createdBy);
  return known === undefined ? undefined : operatorViewer(known.scopes, known.sessions);
}

/** Checks that a viewer may start this run: it needs access to the run's session and agent. */
export function checkRights(
  settings: Settings,
  viewer: Viewer,
  { words, sessionKey, agentId }: CreatedTurn,
): Result<void> {
  const target = { key: sessionKey, agentId: "", archived: false, ancestors: [] };
  const hint = "See gateway.auth.tokens[].sessions.";
  if (!decideAccess("send", viewer, target, accessRulesOf(settings)).allowed) {
    const { sessions = `the session ${sessionKey}` } = words;
    return fail("not_visible", `the token does not cover ${sessions}`, { hint });
  }
  if (maySpeakAs(settings, viewer, agentId)) return ok(undefined);
  const text = `the token does not cover the agent ${agentId}, ${words.runs}`;
  return fail("not_visible", text, { hint });
}

/** Checks that the run may start now with the current rights of its creator's token (CT1). */
export async function checkCreator(ctx: AccessContext, turn: CreatedTurn): Promise<Result<void>> {
  if (turn.createdBy === undefined) return ok(undefined);
  const { made, hint } = turn.words;
  const viewer = creatorViewer(ctx.settings, turn.createdBy);
  if (viewer === undefined) {
    return fail("not_visible", `the token that ${made} was removed from the configuration`, { hint });
  }
  const allowed = checkRights(ctx.settings, viewer, turn);
  if (!allowed.ok || turn.deliver === undefined) return allowed;
  const place = await resolvePlace(ctx, viewer, turn.deliver);
  if (place.ok) return ok(undefined);
  return fail("not_visible", `the token that ${made} may not write to the destination of its replies`, {
    hint,
  });
}
