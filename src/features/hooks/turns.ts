// Starts a run for an incoming web hook, in a new session or in one that the hook may write to.
// HK1: a hook reaches the sessions that its patterns cover (OU1 of outsider.ts).
// One transaction writes the run, its new session and the record of the request (I2).
// HK3: only `hook:` sessions are created here; any other session must already exist.
// A hook's message never changes a session's route (I10) and has the provenance of a hook (I11).

import { chosenAgent, keyRulesOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { LAST, type Route, WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { agentIdInKey, canonicalKey, formatKey, kindOf } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { addressee, checkPlace, type NamedPlace } from "../../flows/delivery/destination.ts";
import { newSession } from "../../flows/session/lifecycle.ts";
import { getSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { type ChoiceRules, checkChoices, checkWords } from "../../triggers/choices.ts";
import {
  acceptTurn,
  covered,
  mainKey,
  noSession,
  type Outsider,
  replySession,
} from "../../triggers/outsider.ts";
import { type Also, HOOK_MESSAGE_MAX_CHARS, hookContext } from "../../triggers/wake.ts";

export interface HookContext extends ChoiceRules {
  readonly engine: Engine;
}

/**
 * The caller and the sessions that it covers. Mappings of the configuration have no patterns and cover all
 * sessions.
 */
export type HookCaller = Extract<Viewer, { kind: "operator" }>;

/** A web hook's request for a run. */
export interface HookTurn {
  /** Id of the mapping that received the request. */
  readonly source?: string | undefined;
  readonly message: string;
  readonly name?: string | undefined;
  /** Default: the session's agent, or the default agent for a new session. */
  readonly agentId?: string | undefined;
  /** Default: a new key, `hook:<uuid>`. */
  readonly sessionKey?: string | undefined;
  /**
   * Destination of the reply, in addition to the transcript. On webchat (the default) and with `last`, `to`
   * is a session, by default the main session of the default agent.
   */
  readonly deliver?: (Omit<NamedPlace, "to"> & { readonly to?: string | undefined }) | undefined;
  readonly model?: string | undefined;
  readonly thinking?: string | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly also: Also;
}

const HINT = "hooks.allowedSessionKeys says which keys a caller may name.";

const outsider = (viewer: HookCaller): Outsider => ({ viewer, name: "web hooks", hint: HINT });

/** Returns the canonical key of the session that a hook names, if the hook may write to it. */
function namedKey(ctx: HookContext, caller: HookCaller, turn: HookTurn): Result<string | undefined> {
  const { sessionKey, agentId } = turn;
  if (sessionKey === undefined) return ok(undefined);
  const rules = keyRulesOf(ctx.settings);
  const who = { agentId: agentId?.trim().toLowerCase() ?? rules.defaultAgentId };
  const key = canonicalKey(sessionKey, who, rules);
  return key.ok ? covered(ctx, outsider(caller), key.value) : key;
}

/**
 * Returns the destination of a reply if the caller may write there, or undefined if the reply stays in the
 * answering session.
 */
async function replyRouteOf(
  ctx: HookContext,
  caller: HookCaller,
  turn: HookTurn,
  own: string | undefined,
): Promise<Result<Route | undefined>> {
  if (turn.deliver === undefined) return ok(undefined);
  const { channel = WEBCHAT, to, accountId, threadId } = turn.deliver;
  if (channel !== WEBCHAT && channel !== LAST) {
    const route = checkPlace(ctx.settings, { channel, to: to ?? "", accountId, threadId });
    if (!route.ok) return route;
    const access = { db: ctx.engine.store.db, settings: ctx.settings };
    const reach = await addressee(access, caller, route.value);
    if (reach.ok) return route;
    return fail("not_visible", reach.error, { hint: "hooks.allowedSessionKeys lists the allowed sessions." });
  }
  // Hooks may always reach the main session, since they may wake it.
  const key = replySession(ctx, { ...outsider(caller), ownKey: mainKey(ctx.settings) }, to);
  if (!key.ok) return key;
  return ok(key.value === own && channel === WEBCHAT ? undefined : { channel, to: key.value });
}

/** Returns the session of the run, and whether it is new. */
async function sessionFor(
  ctx: { settings: Settings },
  unit: Unit,
  turn: HookTurn,
  wanted: { key: string; agentId: string },
): Promise<Result<{ session: Session; isNew: boolean }>> {
  const { key, agentId } = wanted;
  const known = await getSession(unit.tx, key);
  if (known !== undefined) {
    if (turn.agentId === undefined || known.agentId === agentId) return ok({ session: known, isNew: false });
    const text = `session ${key} belongs to agent "${known.agentId}", not to the agentId given`;
    return fail("session_mismatch", text);
  }
  if (kindOf(key, keyRulesOf(ctx.settings)) !== "hook") {
    return noSession(key, "A hook creates only sessions hook:<id>; any other session must exist.");
  }
  const named = turn.name === undefined ? {} : { label: turn.name.trim() };
  const made = newSession(ctx, unit, { key, agentId, ...named });
  return ok({ session: { ...made, ...optional({ model: turn.model }) }, isNew: true });
}

interface Placed {
  readonly key: string | undefined;
  readonly agentId: string;
  readonly route: Route | undefined;
}

async function accept(ctx: HookContext, unit: Unit, turn: HookTurn, placed: Placed): Promise<Result<Run>> {
  const { model, thinking, timeoutSeconds, source } = turn;
  const { route } = placed;
  const key = placed.key ?? formatKey({ form: "hook", name: [unit.newId()] });
  const found = await sessionFor(ctx, unit, turn, { key, agentId: placed.agentId });
  if (!found.ok) return found;
  const { session, isNew } = found.value;
  if (!isNew && model !== undefined && session.model !== model) await updateSession(unit.tx, key, { model });
  return acceptTurn(ctx, unit, {
    session,
    isNew,
    timeoutSeconds,
    replyTo: route,
    input: {
      text: turn.message,
      provenance: { kind: "hook", ...optional({ source }) },
      guest: true,
      context: hookContext({ name: turn.name ?? source, delivers: route !== undefined }),
      ...optional({ thinking }),
    },
  });
}

export async function acceptHook(ctx: HookContext, caller: HookCaller, turn: HookTurn): Promise<Result<Run>> {
  const text = checkWords("message", turn.message, HOOK_MESSAGE_MAX_CHARS);
  if (!text.ok) return text;
  const key = namedKey(ctx, caller, turn);
  if (!key.ok) return key;
  const inKey = key.value === undefined ? undefined : agentIdInKey(key.value);
  const agentId = chosenAgent(ctx.settings, turn.agentId ?? inKey);
  if (!agentId.ok) return agentId;
  const choices = checkChoices(ctx, agentId.value, turn);
  if (!choices.ok) return choices;
  const isHooks = key.value === undefined || kindOf(key.value, keyRulesOf(ctx.settings)) === "hook";
  if (turn.model !== undefined && !isHooks) {
    return fail(
      "invalid_argument",
      "model can be set only for sessions hook:<id>; other sessions keep their model",
    );
  }
  const route = await replyRouteOf(ctx, caller, turn, key.value);
  if (!route.ok) return route;
  const open = ctx.engine.accepting();
  if (!open.ok) return open;
  const place = route.value;
  const placed = { key: key.value, agentId: agentId.value, route: place };
  return ctx.engine.commit(async (unit): Promise<Result<Run>> => {
    // A caller that names an unknown session gets an error. If the session of a mapping is missing, operators
    // get a failed delivery.
    const isNamed = turn.source === undefined && [WEBCHAT, LAST].includes(place?.channel ?? "");
    if (isNamed && place !== undefined && !(await getSession(unit.tx, place.to))) {
      return fail("session_not_found", `to: no session ${JSON.stringify(place.to)}`, {
        hint: "Name an existing session, or omit to for the main session.",
      });
    }
    const run = await accept(ctx, unit, turn, placed);
    const also = run.ok ? await turn.also(unit, run.value) : ok(undefined);
    return also.ok ? run : also;
  });
}
