// Sends a file of an agent to the people of its session: keeps a copy with the transcript, and queues it for
// the chat of these people if there is one.
// FS1: one transaction stores the copy and the outbox row, under an id of the call. A repeated call finds
//      them, and sends nothing.
// FS2: a file goes only to the people who get the session's replies, and only if the send policy allows it.
// FS3: people whose channel can't send the file get a text that names it.

import { optional } from "../../core/optional.ts";
import { insteadOfFile, SENT_FILE_MAX_BYTES, sentFileId } from "../../core/sent-file.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { isInHouse, isSameRoute, LAST, type Route } from "../../core/shapes/route.ts";
import { answerRoute, isAutomatic, type Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait } from "../../engine/lanes/waits.ts";
import type { Unit } from "../../engine/unit.ts";
import { PLATFORMS } from "../../features.ts";
import { type Delivery, getDelivery } from "../../store/queries/channels/deliveries.ts";
import { getSentFile, insertSentFile, type SentFile } from "../../store/queries/channels/sent-files.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { placeOfRun } from "../conversation/party.ts";
import { lastPlace } from "./destination.ts";
import { mayQueue, putInOutbox } from "./outbox.ts";

interface SendParts {
  readonly settings: Settings;
  readonly engine: Engine;
}

interface FileToSend extends Pick<SentFile, "name" | "mimeType" | "caption" | "bytes"> {
  readonly session: Session;
  /** Absent if an operator calls. */
  readonly run?: Run;
  readonly wait?: RunWait;
  readonly callId: string;
  /** Base64. */
  readonly content: string;
}

/** A file that was sent. `delivery`: absent if the session has no chat on a channel. */
export interface FileSent {
  readonly file: SentFile;
  readonly delivery?: Pick<Delivery, "id" | "route" | "fileId">;
}

/** Returns the file that this call sent before a crash, or undefined if it sent none (FS1). */
export async function fileSentBy(
  db: Db,
  { callId, run }: Pick<FileToSend, "callId" | "run">,
): Promise<FileSent | undefined> {
  const id = sentFileId(callId, run?.runId);
  const file = await getSentFile(db, id);
  return file && { file, ...optional({ delivery: await getDelivery(db, id) }) };
}

/** Returns the chat on a channel where the people of the run are, or undefined if there is none. */
async function chatOf(unit: Unit, session: Session, run: Run | undefined): Promise<Route | undefined> {
  // Goes where the replies of the run go (FS2).
  const isOfProgram = run !== undefined && isAutomatic(run.input);
  const route = isOfProgram ? answerRoute(run) : placeOfRun(session, run);
  if (route === undefined || isInHouse(route)) return undefined;
  if (route.channel !== LAST) return route;
  const meant = await getSession(unit.tx, route.to);
  const last = meant && lastPlace(meant);
  return last === undefined || isInHouse(last) ? undefined : last;
}

async function queueFile(
  { settings }: SendParts,
  unit: Unit,
  { session, run, route }: { session: Session; run: Run | undefined; route: Route },
  file: SentFile,
): Promise<Result<NonNullable<FileSent["delivery"]>>> {
  const isAnswer = isSameRoute(route, run && answerRoute(run));
  const able = await mayQueue(unit, settings, { session, route, isAnswer });
  if (!able.ok) return able;
  const { id } = file;
  // A redacted file may be larger than the setting allows.
  const takesFile = PLATFORMS[route.channel]?.sendsFiles === true && file.bytes <= SENT_FILE_MAX_BYTES;
  const sent = { id, route, ...(takesFile && { fileId: id }) };
  const row = { ...sent, sessionKey: session.key, kind: "send", text: insteadOfFile(file) } as const;
  await putInOutbox(unit, { ...row, ...optional({ runId: run?.runId }) });
  return ok(sent);
}

async function sendIn(parts: SendParts, unit: Unit, asked: FileToSend): Promise<Result<FileSent>> {
  const { callId, run, wait, name, mimeType, caption, bytes, content } = asked;
  const before = await fileSentBy(unit.tx, asked);
  if (before !== undefined) return ok(before);
  if (wait !== undefined && !(await wait.holds(unit))) {
    return fail("run_aborted", "the calling run has ended; nothing was sent");
  }
  const session = await getSession(unit.tx, asked.session.key);
  if (session === undefined) return fail("session_not_found", "the session was deleted; nothing was sent");
  const { sessionId } = session;
  const id = sentFileId(callId, run?.runId);
  const file = { id, sessionId, name, mimeType, caption, bytes, createdAt: unit.now };
  const route = await chatOf(unit, session, run);
  const delivery = route && (await queueFile(parts, unit, { session, run, route }, file));
  if (delivery?.ok === false) return delivery;
  await insertSentFile(unit.tx, { ...file, content });
  return ok({ file, ...optional({ delivery: delivery?.value }) });
}

/** Sends a file to the people of a session. The caller has read it, and removed credentials from it. */
export function sendFile(parts: SendParts, asked: FileToSend): Promise<Result<FileSent>> {
  return parts.engine.commit((unit) => sendIn(parts, unit, asked));
}
