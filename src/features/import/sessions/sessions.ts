// Imports all sessions of a source: their keys, their spawners, and their transcripts. If two source entries
// map to the same session, the newer one is imported and the other is reported.

import { optional } from "../../../core/optional.ts";
import type { Entry, Provenance } from "../../../core/shapes/message.ts";
import type { Session } from "../../../core/shapes/session.ts";
import {
  isSubagentKey,
  type KeyRules,
  kindOf,
  parseKey,
  routeOfKey,
} from "../../../core/shapes/session-key.ts";
import { modelNames, type Settings } from "../../../core/shapes/settings/settings.ts";
import { ForeignFileError } from "../../../store/foreign.ts";
import { entryPositionOf, readSourceEntry, timestampOf } from "../entries.ts";
import { derivedUuid, sessionIdOf } from "../ids.ts";
import { linesOf } from "../json-lines.ts";
import { canonicalSourceKey } from "../keys.ts";
import { Pairing, type Repairs } from "../pairing.ts";
import type { Remarks } from "../remarks.ts";
import { isPlainName, type SourceDir, UNREAD_WORDS } from "../source-dir.ts";
import type { SessionDatabase } from "./session-database.ts";
import type { SourceSession } from "./source-sessions.ts";
import { parseLine, planTranscript, type Transcript, type TranscriptPlan } from "./transcript-plan.ts";
import { type ImportStore, ownerOfTranscript, type SessionOutcome, writeSession } from "./write-session.ts";

/** Maximum length of the chain of spawners that is followed from a session. */
const ANCESTORS_MAX = 64;

/** The sessions of one agent of the source. */
export interface AgentStore {
  readonly agentId: string;
  /** Folder of the agent's transcripts, relative to the source's root. */
  readonly folder: readonly string[];
  /** The database of the sessions and their transcripts. Absent: they are in files. */
  readonly database?: SessionDatabase;
  readonly sessions: readonly SourceSession[];
}

/** The parts of the source's configuration that determine its session keys. */
export interface SourceKeys {
  readonly mainName: string;
  readonly isGlobal: boolean;
}

export interface SessionsJob {
  readonly source: SourceDir;
  readonly keys: SourceKeys;
  readonly settings: Settings;
  readonly rules: KeyRules;
  readonly store: ImportStore;
  readonly remarks: Remarks;
  readonly nowMs: number;
  /** Counts of repaired transcript entries. */
  readonly repairs: Repairs;
  /** When this signal fires, no further session is imported. */
  readonly signal: AbortSignal;
  /** Called after each session. */
  done(key: string, outcome: SessionOutcome): void;
}

/** A source session with its key in Parley. */
interface MappedSession {
  readonly key: string;
  readonly agentId: string;
  readonly accountId?: string;
  /** True if the source key has an unknown form, so that the session becomes a conversation. */
  readonly isConversation: boolean;
  readonly folder: readonly string[];
  readonly database?: SessionDatabase;
  readonly session: SourceSession;
}

/** Assigns the keys. If several sessions get the same key, keeps the newest session. */
function place(stores: readonly AgentStore[], job: SessionsJob): Map<string, MappedSession> {
  const placed = new Map<string, MappedSession>();
  for (const { agentId, folder, sessions, database } of stores) {
    for (const session of sessions) {
      const { sourceKey, channel } = session;
      const hints = { agentId, ...job.keys, ...optional({ channel }) };
      const verdict = canonicalSourceKey(sourceKey, hints, job.rules);
      if (verdict.kind === "reserved") {
        job.remarks.note("sessions with a reserved name, skipped", sourceKey);
        continue;
      }
      const { kind, key, agentId: owner, ...rest } = verdict;
      const account = "accountId" in rest ? { accountId: rest.accountId } : {};
      const named = { key, agentId: owner, ...account };
      const there = placed.get(verdict.key);
      const isOlder = there !== undefined && (there.session.updatedAt ?? 0) >= (session.updatedAt ?? 0);
      if (there !== undefined) {
        const other = isOlder ? sourceKey : there.session.sourceKey;
        job.remarks.note(
          "older sessions with the same key as a newer one, skipped",
          `${other} → ${verdict.key}`,
        );
      }
      if (isOlder) continue;
      const isConversation = kind === "conversation";
      placed.set(verdict.key, { ...named, isConversation, folder, session, ...optional({ database }) });
    }
  }
  return placed;
}

/** Returns the key of a session's spawner in Parley, even if the spawner itself is not imported. */
function spawnerOf(placement: MappedSession, job: SessionsJob): string | undefined {
  const { spawnedBy } = placement.session;
  if (spawnedBy === undefined) return undefined;
  const hints = { agentId: placement.agentId, ...job.keys };
  const verdict = canonicalSourceKey(spawnedBy, hints, job.rules);
  return verdict.kind === "reserved" || verdict.key === placement.key ? undefined : verdict.key;
}

function depthOf(key: string, spawners: ReadonlyMap<string, string>): number {
  let depth = 0;
  for (let at = spawners.get(key); at !== undefined && depth < ANCESTORS_MAX; at = spawners.get(at))
    depth += 1;
  return depth;
}

/** Returns the provenance of messages in a session in which no person writes. */
function originOf(key: string, spawnedBy: string | undefined): Provenance | undefined {
  const parsed = parseKey(key);
  const form = parsed.ok ? parsed.value.form : undefined;
  if (form === "cron" || form === "hook" || form === "node") return { kind: form };
  if (!isSubagentKey(key)) return undefined;
  if (spawnedBy === undefined) return { kind: "notice" };
  return {
    kind: "inter_session",
    sourceSessionKey: spawnedBy,
    sourceTool: "sessions_spawn",
    chainId: "import",
    hop: 1,
  };
}

interface Family {
  readonly spawnedBy?: string;
  readonly depth: number;
}

function sessionOf(
  placement: MappedSession,
  sessionId: string,
  family: Family,
  startedAt: number | undefined,
  job: SessionsJob,
): Session {
  const { key, agentId, accountId, session, isConversation } = placement;
  const { settings, remarks, nowMs } = job;
  const updatedAt = session.updatedAt ?? startedAt ?? nowMs;
  const parsed = parseKey(key);
  const place =
    parsed.ok && (parsed.value.form === "group" || parsed.value.form === "channel")
      ? parsed.value
      : undefined;
  const ofKey = routeOfKey(key);
  const known = ofKey === undefined ? session.route : { ...ofKey, ...optional({ accountId }) };
  const account = session.route?.accountId;
  const route =
    known === undefined || known.accountId !== undefined || account === undefined
      ? known
      : { ...known, accountId: account };
  const { model } = session;
  const hasModel = model !== undefined && modelNames(settings.providers).includes(model);
  if (model !== undefined && !hasModel) {
    remarks.note(
      "sessions whose model is not configured here: they use the model of their agent",
      `${key}: ${model}`,
    );
  }
  const label = session.label ?? (isConversation ? session.sourceKey.slice(0, 200) : undefined);
  const { displayName, thinkingLevel, verboseLevel, sendPolicy, archivedAt } = session;
  return {
    key,
    sessionId,
    agentId,
    kind: kindOf(key, job.rules),
    createdAt: Math.min(session.startedAt ?? startedAt ?? updatedAt, updatedAt),
    updatedAt,
    spawnDepth: family.depth,
    // Marks an MCP client's session as external, so that the client finds its inbox when it reconnects.
    external: parsed.ok && parsed.value.form === "external" && parsed.value.client === "mcp",
    systemSent: session.systemSent,
    abortedLastRun: session.abortedLastRun,
    inputTokens: session.inputTokens,
    outputTokens: session.outputTokens,
    totalTokens: session.totalTokens,
    // The source's `totalTokens` is the size of the context at the end, not a sum.
    contextUsed: session.totalTokens,
    cost: 0,
    ...optional({ label, displayName, archivedAt, spawnedBy: family.spawnedBy }),
    ...(hasModel ? { model } : {}),
    ...optional({ thinkingLevel, verboseLevel, sendPolicy, lastRoute: route, groupChannel: place?.channel }),
  };
}

/** Opens a session's transcript, if it exists and may be read. */
async function openTranscript(
  { session, folder, database, key }: MappedSession,
  job: SessionsJob,
): Promise<Transcript | undefined> {
  const { source, remarks } = job;
  const stored = database?.transcript(session.sessionId);
  if (stored !== undefined) return stored;
  const names = [session.fileName, `${session.sessionId}.jsonl`].filter((name) => name !== undefined);
  for (const name of names) {
    if (!isPlainName(name) || !name.endsWith(".jsonl")) {
      remarks.note("sessions whose transcript's name is a path, not read", `${key}: ${name}`);
      continue;
    }
    const opened = await source.open([...folder, name]);
    if (opened.kind === "file") {
      const { handle, size } = opened;
      const lines = () => linesOf(handle, size);
      return { name: [...folder, name].join("/"), lines, close: () => handle.close() };
    }
    if (opened.kind === "absent") continue;
    remarks.note(`sessions whose transcript is ${UNREAD_WORDS[opened.kind]}, not read`, `${key}: ${name}`);
  }
  remarks.note("sessions without a transcript", key);
  return undefined;
}

async function* entriesOf(
  transcript: Transcript,
  plan: TranscriptPlan,
  pairing: Pairing,
  origin: Provenance | undefined,
  nowMs: number,
): AsyncGenerator<Entry> {
  let at = plan.startedAt ?? nowMs;
  for await (const line of transcript.lines()) {
    if (!plan.includes(line.number)) continue;
    const value = parseLine(line, transcript.name);
    if (value === undefined) continue;
    at = timestampOf(value, nowMs) ?? at;
    const entry = readSourceEntry(value, origin);
    const name = plan.nameOf(line.number, entryPositionOf(value).id);
    const firstKept = plan.firstKept(line.number);
    yield* pairing.next({ entry, name, at, ...optional({ firstKept }) });
  }
  yield* pairing.end();
}

async function* nothing(): AsyncGenerator<Entry> {}

async function importOne(
  placement: MappedSession,
  sessionId: string,
  family: Family,
  job: SessionsJob,
): Promise<SessionOutcome> {
  const { nowMs, remarks, store } = job;
  const transcript = await openTranscript(placement, job);
  try {
    const plan = transcript === undefined ? undefined : await planTranscript(transcript, nowMs, remarks);
    if (transcript !== undefined && plan === undefined) {
      return { kind: "left_alone", why: "its transcript has too many entries" };
    }
    const session = sessionOf(placement, sessionId, family, plan?.startedAt, job);
    if (transcript === undefined || plan === undefined) return await writeSession(store, session, nothing());
    const pairing = new Pairing(sessionId);
    const origin = originOf(placement.key, family.spawnedBy);
    const outcome = await writeSession(store, session, entriesOf(transcript, plan, pairing, origin, nowMs));
    job.repairs.callsWithoutResult += pairing.repairs.callsWithoutResult;
    job.repairs.resultsWithoutCall += pairing.repairs.resultsWithoutCall;
    return outcome;
  } catch (error) {
    if (!(error instanceof ForeignFileError)) throw error;
    return { kind: "left_alone", why: "its transcript is in a damaged part of the source's database" };
  } finally {
    await transcript?.close();
  }
}

/** Imports every session of the source, spawners first. */
export async function importSessions(stores: readonly AgentStore[], job: SessionsJob): Promise<void> {
  const placed = place(stores, job);
  const spawners = new Map<string, string>();
  for (const placement of placed.values()) {
    const spawner = spawnerOf(placement, job);
    if (spawner !== undefined) spawners.set(placement.key, spawner);
  }
  const depths = new Map([...placed.keys()].map((key) => [key, depthOf(key, spawners)]));
  const order = [...placed.values()].sort((a, b) => (depths.get(a.key) ?? 0) - (depths.get(b.key) ?? 0));
  const taken = new Map<string, string>();
  for (const placement of order) {
    if (job.signal.aborted) return;
    const { key } = placement;
    const spawnedBy = spawners.get(key);
    const family = { depth: depths.get(key) ?? 0, ...optional({ spawnedBy }) };
    const { agentId, session } = placement;
    const { db } = job.store;
    // The source's own id, unless another session already has it.
    const wanted = sessionIdOf(session.sessionId, agentId);
    const owner = taken.get(wanted) ?? (db === undefined ? undefined : await ownerOfTranscript(db, wanted));
    const sessionId =
      owner === undefined || owner === key ? wanted : derivedUuid("session of", key, session.sessionId);
    taken.set(sessionId, key);
    job.done(key, await importOne(placement, sessionId, family, job));
  }
}
