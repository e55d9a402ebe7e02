// Owns external sessions: programs without a model that have a session of their own (SPEC 3). How such a
// session is found again or made, what it says, and what counts as its answer.
// EX1: agent and handle name the session: the same two find it again, from any process.
// EX2: what it says to others is written into its own transcript too, in the unit that sends it: there is no
//      model whose transcript would have it.
// EX3: its answer goes on in the chain of the message that it answers, so that a program which answers by
//      itself comes to the limits of a chain (I8).

import { fail, ok, type Result } from "../core/errors.ts";
import type { Run } from "../core/run.ts";
import { LABEL_CHARS_MAX, type Session } from "../core/session.ts";
import { formatKey } from "../core/session-key.ts";
import type { Settings } from "../core/settings.ts";
import { hasScope, type Viewer } from "../core/visibility.ts";
import type { Engine } from "../engine/engine.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { hasSentInChain } from "../store/flows.ts";
import { listRuns } from "../store/runs.ts";
import { getSession, updateSession } from "../store/sessions.ts";
import type { Tx } from "../store/sql.ts";
import { chosenAgent, openGate } from "./access.ts";
import { insertNew, newSession } from "./lifecycle.ts";

interface ExternalParts {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** Who comes: an MCP client, to an agent, under a name that it uses again. */
export interface ExternalClient {
  readonly agentId: string;
  readonly handle: string;
  /** What it calls itself: the session's label, unless that has one already. */
  readonly name?: string;
}

/** Runs of an external session that are looked at for what it may be answering. */
const ANSWERED_FROM_MAX = 100;

/** A name as a label: one line, nothing that could hide; undefined when nothing is left of it. */
function labelOf(name = ""): string | undefined {
  const line = name.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\s]+/gu, " ").trim();
  const label = line.slice(0, LABEL_CHARS_MAX).toWellFormed().trim();
  return label === "" ? undefined : label;
}

/** A name that was not known when the session was made. */
async function nameIt(parts: ExternalParts, session: Session, label: string): Promise<Session> {
  return parts.engine.commit(async (unit) => {
    await updateSession(unit.tx, session.key, { label });
    unit.publish({ kind: "session", sessionKey: session.key, change: "updated" });
    return { ...session, label };
  });
}

/**
 * The client's session, made if it is not there. A viewer that may only read makes none: it gets a session
 * that is not stored, in whose name nothing can be sent.
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
  const label = labelOf(name);
  const access = { db: engine.store.db, settings };
  const mayWrite = viewer.kind === "operator" && hasScope(viewer.scopes, "operator.write");
  const admitted = async (session: Session): Promise<Result<Session>> => {
    const verdict = await openGate(access, viewer).decide("read", session);
    if (!verdict.allowed) return fail(verdict.code, verdict.error);
    if (session.archivedAt === undefined) return ok(session);
    return fail("session_archived", `session ${key} is archived and read-only`);
  };
  const known = await getSession(engine.store.db, key);
  if (known !== undefined) {
    const found = await admitted(known);
    const unnamed = found.ok && known.label === undefined && label !== undefined && mayWrite;
    return unnamed ? ok(await nameIt(parts, known, label)) : found;
  }
  return engine.commit(async (unit): Promise<Result<Session>> => {
    const facts = { key, agentId, external: true, ...(label === undefined ? {} : { label }) };
    // Two requests of a new client may come at once.
    const session = (await getSession(unit.tx, key)) ?? newSession(parts, unit, facts);
    const found = await admitted(session);
    if (found.ok && mayWrite && (await getSession(unit.tx, key)) === undefined)
      await insertNew(unit, session);
    return found;
  });
}

interface Said {
  /** Key of the session that it was said to. */
  readonly to: string;
  readonly text: string;
}

/** Writes down what an external session said, in the unit in which it is sent. Nothing for others. */
export async function noteSaid(
  acceptor: Pick<Acceptor, "acceptIn">,
  unit: Unit,
  speaker: Session,
  said: Said,
): Promise<Result<void>> {
  if (!speaker.external) return ok(undefined);
  const noted = await acceptor.acceptIn(unit, {
    sessionKey: speaker.key,
    kind: "append",
    input: { text: `[to ${said.to}]\n\n${said.text}`, injected: true },
    successor: true,
  });
  return noted.ok ? ok(undefined) : noted;
}

/**
 * What an external session answers by sending to `target`: the last message from there, unless it has
 * answered that already.
 */
export async function answeredBy(tx: Tx, speaker: Session, target: Session): Promise<Run | undefined> {
  if (!speaker.external) return undefined;
  const runs = await listRuns(tx, { sessionKey: speaker.key, limit: ANSWERED_FROM_MAX });
  const asked = runs.find(({ sessionId, input: { provenance } }) => {
    if (sessionId !== speaker.sessionId || provenance?.kind !== "inter_session") return false;
    return provenance.sourceSessionKey === target.key && provenance.sourceTool === "sessions_send";
  });
  if (asked === undefined) return undefined;
  const { chainId, acceptedAt: afterMs } = asked;
  const ours = { chainId, requesterKey: speaker.key, targetKey: target.key, afterMs };
  const said = await hasSentInChain(tx, ours);
  return said ? undefined : asked;
}
