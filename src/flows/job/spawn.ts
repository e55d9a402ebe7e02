// Implements `sessions_spawn` after the policy checks: creates a child session, its job and its first run.
// One transaction writes the session, the flow and the run, and counts the run in its chain. The attachments
// are written to disk first, in a folder named after the run, and are removed if the transaction fails. After
// a crash in between, the next start removes them. A thread is also created before the transaction, and stays
// unbound if the transaction fails. A tool call that is repeated after a crash finds its child again and
// never creates a second one (I4).

import { optional } from "../../core/optional.ts";
import { jobDelivery } from "../../core/rules/result-delivery.ts";
import { checkChildren, type SpawnPlan } from "../../core/rules/spawn-policy.ts";
import { maySpawnAt } from "../../core/rules/tool-policy.ts";
import { subagentContext } from "../../core/rules/turn-rules.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import { NOT_YET_USED, type Route, type Session } from "../../core/shapes/session.ts";
import { formatKey } from "../../core/shapes/session-key.ts";
import { withAccount } from "../../core/shapes/settings/channels.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { AttachmentReceipt } from "../../core/shapes/spawn.ts";
import { cut } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdSessions } from "../../store/locks.ts";
import { StoreProblem } from "../../store/problems.ts";
import { openSpawnsOf } from "../../store/queries/chains/flows.ts";
import type { ThreadBinding } from "../../store/queries/channels/thread-bindings.ts";
import { getRunOfCall } from "../../store/queries/runs/runs.ts";
import { getSession, insertSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { partyOf, provenanceFrom } from "../conversation/party.ts";
import type { SessionCall } from "../conversation/send.ts";
import { bindPlace, type Threads } from "../delivery/bindings.ts";
import { openFlow } from "../flow-events.ts";
import { noteSaidByExternal } from "../session/external.ts";
import { type AttachmentPlan, attachmentOwner, removeAttachments, writeAttachments } from "./attachments.ts";

/** Maximum length of a thread's title, within the limit of every platform. */
const TITLE_CHARS_MAX = 90;

export interface SpawnRequest extends SessionCall {
  readonly task: string;
  readonly label?: string;
  readonly plan: SpawnPlan;
  readonly attachments?: AttachmentPlan;
  readonly route?: Route;
}

interface SpawnParts {
  readonly engine: Engine;
  readonly settings: Settings;
  /** Absent if no channel can create threads. */
  readonly threads?: Threads | undefined;
}

/** Files and a thread that are created before the accepting transaction. */
interface Made {
  readonly runId: string;
  readonly attachments?: AttachmentReceipt;
  readonly thread?: Pick<ThreadBinding, "route" | "kind">;
}

/** An accepted spawn. `runId`: the first run of the child. */
export type SpawnOutcome =
  | { readonly kind: "spawned"; readonly runId: string; readonly child: Session }
  /** The child was deleted when its job was done. */
  | {
      readonly kind: "child_deleted";
      readonly runId: string;
      readonly childKey: string;
      readonly model?: string;
    };

function childOf(
  parts: SpawnParts,
  unit: Unit,
  request: SpawnRequest,
  ids: { flowId: string; uuid: string },
  { runId, attachments, thread }: Made,
): Session {
  const { requester, plan, route } = request;
  const { tools } = parts.settings;
  return {
    key: formatKey({ form: "subagent", agentId: plan.agent.id, id: ids.uuid }),
    sessionId: unit.newId(),
    agentId: plan.agent.id,
    kind: "other",
    createdAt: unit.now,
    updatedAt: unit.now,
    spawnedBy: requester.key,
    spawnDepth: plan.spawnDepth,
    external: false,
    model: plan.model,
    ...NOT_YET_USED,
    ...optional({ label: request.label, thinkingLevel: plan.thinking, lastRoute: thread?.route }),
    spawn: {
      flowId: ids.flowId,
      runId,
      requesterKey: requester.key,
      requesterSessionId: requester.sessionId,
      announce: plan.announce,
      cleanup: plan.cleanup,
      mode: plan.mode,
      archiveAfterMinutes: plan.archiveAfterMinutes,
      sandboxed: plan.sandboxed,
      ...optional({ route, thread: thread?.route }),
      ...(attachments === undefined
        ? {}
        : { attachments, retainAttachments: tools.sessionsSpawn.attachments.retainOnSessionKeep }),
    },
  };
}

/** Returns the sub-agent's first message: the task, and the paths of the attached files. */
function taskText({ task }: SpawnRequest, attachments: AttachmentReceipt | undefined): string {
  if (attachments === undefined) return task;
  const names = attachments.files.map((file) => `- ${file.name} (${file.bytes} bytes)`).join("\n");
  return `${task}\n\nFiles in ${attachments.dir} of your workspace:\n${names}`;
}

/**
 * Reads the requester in this transaction. Fails if the requester was aborted or deleted, or if the same call
 * was accepted in the meantime.
 */
async function requesterIn(unit: Unit, request: SpawnRequest): Promise<Result<Session>> {
  const { key } = request.requester;
  await holdSessions(unit.tx, [key]);
  if (request.wait !== undefined && !(await request.wait.holds(unit))) {
    return fail("run_aborted", "the run that spawns has ended; nothing was spawned");
  }
  const requester = await getSession(unit.tx, key);
  if (requester === undefined) return fail("session_not_found", `session ${key} no longer exists`);
  if (requester.archivedAt !== undefined) {
    return fail("session_archived", `session ${key} is archived and read-only`, {
      hint: "An operator can restore it.",
    });
  }
  if ((await getRunOfCall(unit.tx, request.callId)) === undefined) return ok(requester);
  return fail("idempotency_conflict", "this call was just accepted by another request");
}

async function enqueue(
  parts: SpawnParts,
  asked: SpawnRequest,
  unit: Unit,
  made: Made,
): Promise<Result<{ run: Run; child: Session }>> {
  const { engine, settings } = parts;
  const current = await requesterIn(unit, asked);
  if (!current.ok) return current;
  const requester = current.value;
  const request = { ...asked, requester };
  const { requesterRun } = request;
  const open = await openSpawnsOf(unit.tx, { sessionKey: requester.key });
  // Checked again inside the transaction, because the tool calls of one model message run in parallel.
  const tooMany = checkChildren(open.length, settings);
  if (tooMany !== undefined) return tooMany;
  const { runId, attachments, thread } = made;
  const ids = { flowId: unit.newOrderedId(), uuid: unit.newId() };
  const child = childOf(parts, unit, request, ids, made);
  await insertSession(unit.tx, child);
  const bound = thread && (await bindPlace(parts, unit, { ...thread, sessionKey: child.key }));
  if (bound?.ok === false) return bound;
  unit.publish({ kind: "session", sessionKey: child.key, change: "created" });
  const chain = { chainId: requesterRun?.chainId ?? unit.newOrderedId(), hop: (requesterRun?.hop ?? 0) + 1 };
  const accepted = await engine.acceptIn(unit, {
    runId,
    sessionKey: child.key,
    input: {
      text: taskText(request, attachments),
      provenance: provenanceFrom(requester, chain, "sessions_spawn"),
      ...optional({ guest: request.guest }),
      context: contextFor(settings, child, requester),
    },
    chain,
    rootSessionKey: requester.key,
    flow: { flowId: ids.flowId, step: "task", turn: 1 },
    callId: request.callId,
    // Rounded up, so that a short limit never becomes 0, which means no limit.
    timeoutMs: Math.ceil(request.plan.runTimeoutSeconds * 1000),
    ...optional({ parentRunId: requesterRun?.runId, route: thread?.route }),
  });
  if (!accepted.ok) return accepted;
  const first = { flowId: ids.flowId, step: "task" } as const;
  const job = { kind: "spawn", requester, turnsMax: 0, requestText: request.task } as const;
  await openFlow(unit, accepted.value.run, first, job);
  const said = { to: child.key, text: request.task };
  const noted = await noteSaidByExternal(engine, unit, requester, said);
  if (!noted.ok) return noted;
  return ok({ run: accepted.value.run, child });
}

function contextFor(settings: Settings, child: Session, requester: Session): string {
  return subagentContext({
    requester: partyOf(settings, requester, child),
    self: partyOf(settings, child, child),
    depth: child.spawnDepth,
    maySpawn: maySpawnAt(child.spawnDepth, settings),
    way: jobDelivery(requester, child.spawn),
    thread: child.spawn?.thread !== undefined,
  });
}

/**
 * Returns the context of a sub-agent's run whose input has no context. Returns undefined if the session is
 * not a sub-agent.
 */
export async function childContext(
  settings: Settings,
  db: Db,
  session: Session,
): Promise<string | undefined> {
  if (session.spawn === undefined) return undefined;
  const requester = await getSession(db, session.spawn.requesterKey);
  const { spawn: _, ...gone } = { ...session, key: session.spawn.requesterKey };
  return contextFor(settings, session, requester ?? gone);
}

/** Returns the outcome of a call that was accepted before a crash, or undefined if it was not accepted. */
export async function spawnedBefore(
  { engine }: Pick<SpawnParts, "engine">,
  callId: string,
): Promise<SpawnOutcome | undefined> {
  const { db } = engine.store;
  const run = await getRunOfCall(db, callId);
  if (run === undefined) return undefined;
  const { runId, sessionKey: childKey, model } = run;
  const child = await getSession(db, childKey);
  if (child !== undefined) return { kind: "spawned", runId, child };
  return { kind: "child_deleted", runId, childKey, ...optional({ model }) };
}

/** Creates the thread for a child with its own thread, or returns undefined if the child needs none. */
async function threadFor(
  { settings, threads }: SpawnParts,
  { plan, route, label, task }: SpawnRequest,
): Promise<Result<Pick<ThreadBinding, "route" | "kind">> | undefined> {
  if (!plan.thread) return undefined;
  if (route === undefined || threads === undefined) {
    return fail("spawn_denied", "thread: true needs a channel with threads, and this session has none", {
      hint: "Spawn without thread.",
    });
  }
  const title = safeLine(label ?? task.trim().split("\n", 1)[0] ?? "").trim();
  return threads.open(withAccount(settings.channels, route), cut(title, TITLE_CHARS_MAX));
}

/**
 * Spawns a sub-agent according to the plan of the spawn policy. The caller has checked that `spawnedBefore`
 * returned undefined.
 */
export async function spawnSession(parts: SpawnParts, request: SpawnRequest): Promise<Result<SpawnOutcome>> {
  const { engine } = parts;
  const open = engine.accepting();
  if (!open.ok) return open;
  const runId = engine.newOrderedId();
  let receipt: AttachmentReceipt | undefined;
  if (request.attachments !== undefined) {
    const owner = attachmentOwner(parts.settings.store);
    const written = await writeAttachments(request.plan.agent.workspace, request.attachments, runId, owner);
    if (!written.ok) return written;
    receipt = written.value;
  }
  const undo = async (): Promise<void> => {
    if (receipt !== undefined) await removeAttachments(request.plan.agent.workspace, receipt.dir);
  };
  const thread = await threadFor(parts, request);
  if (thread?.ok === false) {
    await undo();
    return thread;
  }
  const made: Made = {
    runId,
    ...optional({ attachments: receipt, thread: thread?.value }),
  };
  try {
    const spawned = await engine.commit((unit) => enqueue(parts, request, unit, made));
    if (spawned.ok)
      return ok({ kind: "spawned", runId: spawned.value.run.runId, child: spawned.value.child });
    await undo();
    const before = await spawnedBefore(parts, request.callId);
    return before === undefined ? spawned : ok(before);
  } catch (error) {
    // If the store failed, the transaction may have succeeded although its answer was lost. Then the
    // sub-agent needs the files. If it failed, the gateway's next start removes them.
    if (!(error instanceof StoreProblem)) await undo();
    throw error;
  }
}
