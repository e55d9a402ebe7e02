// Owns external sessions: programs without a model that have a session. The session's key consists of agent
// and handle, so any process finds it. A message from an external session is also written into its own
// transcript, in the same transaction, because it has no model that would do so.

import { chosenAgent, openGate } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type SentNote, writeSentNote } from "../../core/sent-note.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { formatKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { labelOf } from "../../core/text/label.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { getSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { insertNew, newSession } from "./lifecycle.ts";

interface ExternalParts {
  readonly engine: Engine;
  readonly settings: Settings;
}

export interface ExternalClient {
  readonly agentId: string;
  readonly handle: string;
  /** The name for people. It becomes the session's label, unless the session has one. */
  readonly name?: string;
}

/**
 * Returns the client's session, creating it if missing. For a viewer that may only read, it returns a session
 * that is not stored and can't send.
 */
export async function openExternal(
  parts: ExternalParts,
  viewer: Viewer,
  { agentId: wanted, handle, name }: ExternalClient,
): Promise<Result<Session>> {
  const { engine, settings } = parts;
  const chosen = chosenAgent(settings, wanted);
  if (!chosen.ok) return chosen;
  const agentId = chosen.value;
  const key = formatKey({ form: "external", agentId, client: "mcp", id: handle });
  const label = labelOf(name ?? "");
  const access = { db: engine.store.db, settings };
  const mayWrite = viewer.kind === "operator" && hasScope(viewer.scopes, "operator.write");
  const admit = async (session: Session): Promise<Result<Session>> => {
    const verdict = await openGate(access, viewer).decide("read", session);
    if (!verdict.allowed) return fail(verdict.code, verdict.error);
    if (session.archivedAt === undefined) return ok(session);
    return fail("session_archived", `session ${key} is archived and read-only`, {
      hint: "An operator can restore it.",
    });
  };
  const known = await getSession(engine.store.db, key);
  if (known !== undefined) {
    const found = await admit(known);
    if (!found.ok || known.label !== undefined || label === undefined || !mayWrite) return found;
    // Its client had no name when the session was created.
    return engine.commit(async (unit) => {
      await updateSession(unit.tx, key, { label });
      unit.publish({ kind: "session", sessionKey: key, change: "updated" });
      return ok({ ...known, label });
    });
  }
  return engine.commit(async (unit): Promise<Result<Session>> => {
    const facts = { key, agentId, external: true, ...optional({ label }) };
    // A concurrent first request of the client may have created the session.
    const session = (await getSession(unit.tx, key)) ?? newSession(parts, unit, facts);
    const found = await admit(session);
    if (found.ok && mayWrite && (await getSession(unit.tx, key)) === undefined)
      await insertNew(unit, session);
    return found;
  });
}

/**
 * Writes the message to the session `to` into the external session's transcript, in the transaction that
 * sends it. Does nothing for other sessions.
 */
export async function noteSaidByExternal(
  acceptor: Pick<Acceptor, "acceptIn">,
  unit: Unit,
  speaker: Session,
  note: SentNote,
): Promise<Result<void>> {
  if (!speaker.external) return ok(undefined);
  const noted = await acceptor.acceptIn(unit, {
    sessionKey: speaker.key,
    kind: "append",
    input: { text: writeSentNote(note), injected: true },
    successor: true,
  });
  return noted.ok ? ok(undefined) : noted;
}
