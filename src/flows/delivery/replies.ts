// Delivers the replies of runs that a job, a web hook or a node started.
// RP1: the transaction that finishes the run writes the outbox row (I4, I5), for the destination with which
//      the run was started. A silent reply or an unsuccessful run delivers nothing.
// RP2: text is delivered only if the send policy allows it for this session and destination.

import { LAST, type Route, WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { insertDelivery } from "../../store/queries/channels/deliveries.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { answerTexts } from "./answer-texts.ts";
import { lastPlace, leaveVerdict } from "./destination.ts";
import { queueDelivery } from "./outbox.ts";

interface ReplyParts {
  readonly settings: Settings;
}

/** A reply to deliver. */
interface Reply {
  readonly session: Session;
  readonly route: Route;
  readonly text: string;
  readonly runId: string;
}

/** Stores a reply that is not delivered, and the reason, for operators to see. */
async function keep(
  unit: Unit,
  { session, route, text, runId }: Reply,
  why: { state: "failed" | "skipped"; code: string; error: string },
): Promise<void> {
  const row = { id: unit.newId(), sessionKey: session.key, kind: "send", route, text, runId } as const;
  await insertDelivery(unit.tx, { ...row, ...why, createdAt: unit.now });
}

/** Resolves the route `last` to the route that the session used last. */
async function whereTo(unit: Unit, route: Route): Promise<Route> {
  if (route.channel !== LAST) return route;
  const session = await getSession(unit.tx, route.to);
  return session === undefined ? { channel: WEBCHAT, to: route.to } : lastPlace(session);
}

async function send(parts: ReplyParts, acceptor: Acceptor, unit: Unit, asked: Reply): Promise<void> {
  const reply = { ...asked, route: await whereTo(unit, asked.route) };
  const { route, session, text, runId } = reply;
  // The transcript has it already.
  if (route.channel === WEBCHAT && route.to === session.key) return;
  const verdict = await leaveVerdict(unit.tx, parts.settings, session, route);
  if (!verdict.allowed) {
    return keep(unit, reply, { state: "skipped", code: "send_denied", error: verdict.error });
  }
  if (route.channel === WEBCHAT) {
    // Appends the reply to the session: a delivery to webchat is only a live event, and the reply must stay
    // readable.
    const appended = await acceptor.acceptIn(unit, {
      sessionKey: route.to,
      kind: "append",
      input: { text, injected: true },
      successor: true,
    });
    if (!appended.ok) {
      return keep(unit, reply, { state: "failed", code: appended.code, error: appended.error });
    }
  }
  await queueDelivery(parts, unit, { session, route, text, kind: "send", runId });
}

/** Delivers the reply of an ended run to its destination, if it has one. */
export async function replyRunEnded(
  parts: ReplyParts,
  acceptor: Acceptor,
  unit: Unit,
  run: Run,
): Promise<void> {
  const kind = run.input.provenance?.kind;
  // Runs of web hooks and nodes of version 0.1 had the destination of their reply as their route.
  const route = run.input.replyTo ?? (kind === "hook" || kind === "node" ? run.route : undefined);
  if (route === undefined || run.state !== "ok") return;
  const session = await getSession(unit.tx, run.sessionKey);
  if (session === undefined) return;
  for (const text of await answerTexts(parts.settings, unit, run, { session, route }))
    await send(parts, acceptor, unit, { session, route, text, runId: run.runId });
}
