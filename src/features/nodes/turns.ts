// Starts a run for an event of a paired node, in the node's own session or in one that it may write to.
// NO1: one transaction writes the run, its new session and the record of the event (I2). Only the node's
//      own session is created here; any other must exist and be covered by nodes.allowedSessionKeys (OU1 of
//      outsider.ts). A node that a token paired needs that token's current rights (CT1 of creator.ts).
// NO2: a node's message never changes a session's route (I10) and has the provenance of a node (I11).

import { operatorKey, operatorViewer } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Route, WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { defaultAgent, findAgent } from "../../core/shapes/settings/settings.ts";
import type { Unit } from "../../engine/unit.ts";
import { newSession } from "../../flows/session/lifecycle.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { type ChoiceRules, checkChoices, checkWords } from "../../triggers/choices.ts";
import { type CreatorWords, checkCreator } from "../../triggers/creator.ts";
import { acceptTurn, covered, noSession, type Outsider, replySession } from "../../triggers/outsider.ts";
import { type NodeRow, nodeContext, nodeKey } from "./node.ts";
import type { NodeContext } from "./pairing.ts";
import { getNode } from "./store.ts";

const NODE_WORDS: CreatorWords = {
  made: "paired this node",
  runs: "to which the node speaks",
  hint: "Remove the node and pair it again with a token that covers its sessions.",
};

const MESSAGE_MAX_CHARS = 100_000;

/** A node's request for a run. */
export interface NodeTurn {
  readonly message: string;
  /** Whether the text is transcribed speech. */
  readonly spoken: boolean;
  /** Default: the node's own session. */
  readonly sessionKey?: string | undefined;
  /** If set, the reply is also delivered to the session `to` (default: the default agent's main session). */
  readonly deliver?: { readonly to?: string | undefined } | undefined;
  readonly thinking?: string | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly also: (unit: Unit, run: Run) => Promise<void>;
}

const HINT = "nodes.allowedSessionKeys says which keys a node may name besides its own.";

/**
 * Returns the destination of a reply if the node may write there, or undefined if the reply stays in the
 * answering session.
 */
function placeOfReply(
  ctx: NodeContext,
  own: Outsider,
  turn: NodeTurn,
  key: string,
): Result<Route | undefined> {
  if (turn.deliver === undefined) return ok(undefined);
  const place = replySession(ctx, own, turn.deliver.to);
  if (!place.ok) return place;
  return ok(place.value === key ? undefined : { channel: WEBCHAT, to: place.value });
}

async function sessionFor(
  ctx: NodeContext,
  unit: Unit,
  node: NodeRow,
  key: string,
): Promise<Result<{ session: Session; isNew: boolean }>> {
  const known = await getSession(unit.tx, key);
  if (known !== undefined) return ok({ session: known, isNew: false });
  if (key !== nodeKey(node.id)) {
    return noSession(key, "A node creates only its own session; any other session must exist.");
  }
  const { agentId = "" } = node;
  const agent = findAgent(ctx.settings, agentId) ?? defaultAgent(ctx.settings);
  return ok({ session: newSession(ctx, unit, { key, agentId: agent.id, label: node.name }), isNew: true });
}

async function accept(
  ctx: NodeContext,
  unit: Unit,
  node: NodeRow,
  turn: NodeTurn,
  place: { key: string; route: Route | undefined },
): Promise<Result<Run>> {
  const { key, route } = place;
  const { thinking, timeoutSeconds, spoken } = turn;
  const found = await sessionFor(ctx, unit, node, key);
  if (!found.ok) return found;
  const { agentId } = found.value.session;
  const allowed = await checkCreator(
    { db: unit.tx, settings: ctx.settings },
    { words: NODE_WORDS, createdBy: node.createdBy, sessionKey: key, agentId, deliver: route },
  );
  if (!allowed.ok) return allowed;
  return acceptTurn(ctx, unit, {
    ...found.value,
    timeoutSeconds,
    replyTo: route,
    input: {
      text: turn.message,
      provenance: { kind: "node", source: node.id },
      guest: true,
      context: nodeContext({ name: node.name, spoken, delivers: route !== undefined }),
      ...optional({ thinking }),
    },
  });
}

/** Accepts a run for an event of a paired node. */
export async function acceptNodeTurn(
  ctx: NodeContext & ChoiceRules,
  nodeId: string,
  turn: NodeTurn,
): Promise<Result<Run>> {
  const text = checkWords("message", turn.message, MESSAGE_MAX_CHARS);
  if (!text.ok) return text;
  const ownKey = nodeKey(nodeId);
  const viewer = operatorViewer(["operator.write"], ctx.settings.nodes.allowedSessionKeys);
  const own = { viewer, ownKey, name: "this node", hint: HINT };
  const named = turn.sessionKey === undefined ? ok(ownKey) : operatorKey(ctx.settings, turn.sessionKey);
  const known = named.ok ? covered(ctx, own, named.value) : named;
  if (!known.ok) return known;
  const key = known.value;
  const { thinking, timeoutSeconds } = turn;
  const choices = checkChoices(ctx, defaultAgent(ctx.settings).id, { thinking, timeoutSeconds });
  if (!choices.ok) return choices;
  const route = placeOfReply(ctx, own, turn, key);
  if (!route.ok) return route;
  const open = ctx.engine.accepting();
  if (!open.ok) return open;
  return ctx.engine.commit(async (unit): Promise<Result<Run>> => {
    // A removed device may still have an open connection.
    const node = await getNode(unit.tx, nodeId);
    if (node === undefined)
      return fail("not_paired", "this device is no longer paired", {
        hint: "Connect again; an operator must approve the device again.",
      });
    const run = await accept(ctx, unit, node, turn, { key, route: route.value });
    if (run.ok) await turn.also(unit, run.value);
    return run;
  });
}
