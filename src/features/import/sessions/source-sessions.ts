// Reads the source's session store. Only the fields that are needed are kept; prompts and snapshots are
// skipped. Unknown fields are reported, never guessed.

import { parseText } from "../../../config/source.ts";
import { type Fields, fieldsOf, isObject } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import type { Route } from "../../../core/shapes/route.ts";
import { isChannelId } from "../../../core/shapes/session-key.ts";
import { THINKING_LEVELS, thinkingNamed } from "../../../core/shapes/settings/settings.ts";
import { countIn, lineIn, routeIn, textIn, timeIn } from "../fields.ts";
import { parseForeign } from "../json-lines.ts";
import type { Remarks } from "../remarks.ts";
import { readWhole, type SourceDir, UNREAD_WORDS } from "../source-dir.ts";

const STORE_BYTES_MAX = 96 * 1024 * 1024;
/** Maximum size of a store in JSON5, which is written by hand and slower to parse than JSON. */
const HAND_BYTES_MAX = 4 * 1024 * 1024;
const VALUES_MAX = 3_000_000;
const SESSIONS_MAX = 50_000;

export interface SourceSession {
  readonly sourceKey: string;
  readonly sessionId: string;
  /** The name of the transcript's file. Absent: `<sessionId>.jsonl`. */
  readonly fileName?: string;
  readonly updatedAt?: number;
  readonly startedAt?: number;
  readonly archivedAt?: number;
  readonly spawnedBy?: string;
  readonly label?: string;
  readonly displayName?: string;
  readonly channel?: string;
  readonly route?: Route;
  readonly model?: string;
  readonly thinkingLevel?: string;
  readonly verboseLevel?: string;
  readonly sendPolicy?: "allow" | "deny";
  readonly systemSent: boolean;
  readonly abortedLastRun: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

const USED = new Set(
  (
    "sessionId sessionFile delivery updatedAt sessionStartedAt archivedAt spawnedBy parentSessionKey label " +
    "displayName subject origin channel provider route deliveryContext lastChannel lastProvider lastTo " +
    "lastAccountId lastThreadId providerOverride modelOverride thinkingLevel verboseLevel sendPolicy " +
    "systemSent abortedLastRun inputTokens outputTokens totalTokens groupChannel room space chatType " +
    "groupId"
  ).split(" "),
);
/** Known fields that have no meaning in Parley: caches, reports, settings of missing features. */
const PASSED_OVER = new Set(
  (
    "contextTokens model modelProvider skillsSnapshot systemPromptReport compactionCount memoryFlushAt " +
    "memoryFlushCompactionCount cacheRead cacheWrite totalTokensFresh status lastInteractionAt " +
    "lastActivityAt lastReadAt autoLabel spawnDepth endedAt startedAt runtimeMs estimatedCostUsd " +
    "authProfileOverride authProfileOverrideSource pinnedAt authProfileOverrideCompactionCount " +
    "cliSessionIds claudeCliSessionId responseUsage lastHeartbeatText lastHeartbeatSentAt markedUnreadAt " +
    "spawnedWorkspaceDir modelOverrideSource createdVia createdAt activeWriterRunId contextTokensSource " +
    "agentHarnessId contextBudgetStatus totalTokensVersion lastRunId lifecycleRevision sessionDiffBaseline " +
    "createdActor restartRecoveryTerminalRunIds"
  ).split(" "),
);

function channelIn(value: unknown): string | undefined {
  const channel = textIn(value, 64)?.toLowerCase();
  return channel !== undefined && isChannelId(channel) ? channel : undefined;
}

/** Returns the fields that name the chat of a session. Newer versions keep them in one field. */
function chatIn(entry: Fields): Fields {
  const { kind, context: deliveryContext, origin } = fieldsOf(entry.delivery);
  return kind === "external" ? { deliveryContext, origin } : entry;
}

function lastRouteIn(entry: Fields): Route | undefined {
  const context = fieldsOf(entry.deliveryContext);
  const channel = channelIn(context.channel) ?? channelIn(entry.lastChannel) ?? channelIn(entry.lastProvider);
  const to = lineIn(context.to, 512) ?? lineIn(entry.lastTo, 512);
  if (channel === undefined || to === undefined || channel === "webchat" || channel === "internal")
    return undefined;
  const accountId = lineIn(context.accountId, 128) ?? lineIn(entry.lastAccountId, 128);
  const thread = context.threadId ?? entry.lastThreadId;
  const threadId = lineIn(typeof thread === "number" ? String(thread) : thread, 128);
  return routeIn(channel, to, accountId, threadId);
}

function modelIn(entry: Fields): string | undefined {
  const model = textIn(entry.modelOverride, 200);
  const provider = textIn(entry.providerOverride, 100);
  if (model === undefined || model.includes("/")) return model;
  return provider === undefined ? undefined : `${provider}/${model}`;
}

function oneOf(
  entry: Fields,
  name: string,
  valid: readonly string[],
  remarks: Remarks,
  key: string,
): string | undefined {
  const value = textIn(entry[name], 40);
  if (value === undefined || valid.includes(value)) return value;
  remarks.note(`values of ${name} that are invalid here, skipped`, `${key}: ${value}`);
  return undefined;
}

function readEntry(
  sourceKey: string,
  entry: Fields,
  now: number,
  remarks: Remarks,
): SourceSession | undefined {
  const sessionId = textIn(entry.sessionId, 200);
  if (sessionId === undefined) {
    remarks.note("entries of the session store without a sessionId, skipped", sourceKey);
    return undefined;
  }
  for (const name of Object.keys(entry)) {
    if (!USED.has(name) && !PASSED_OVER.has(name)) remarks.note("unknown fields of sessions", name);
  }
  const chat = chatIn(entry);
  const origin = fieldsOf(chat.origin);
  const policy = textIn(entry.sendPolicy, 10);
  const route = lastRouteIn(chat);
  return {
    sourceKey,
    sessionId,
    systemSent: entry.systemSent === true,
    abortedLastRun: entry.abortedLastRun === true,
    inputTokens: countIn(entry.inputTokens) ?? 0,
    outputTokens: countIn(entry.outputTokens) ?? 0,
    totalTokens: countIn(entry.totalTokens) ?? 0,
    ...optional({
      fileName: textIn(entry.sessionFile, 4_096)?.split(/[/\\]/).at(-1),
      updatedAt: timeIn(entry.updatedAt, now),
      startedAt: timeIn(entry.sessionStartedAt, now),
      archivedAt: timeIn(entry.archivedAt, now),
      spawnedBy: textIn(entry.spawnedBy, 600),
      label: lineIn(entry.label, 200),
      displayName: lineIn(entry.displayName ?? entry.subject ?? origin.label, 200),
      channel:
        channelIn(entry.channel) ?? channelIn(entry.provider) ?? channelIn(origin.provider) ?? route?.channel,
      route,
      model: modelIn(entry),
      thinkingLevel:
        thinkingNamed(textIn(entry.thinkingLevel, 40) ?? "") ??
        oneOf(entry, "thinkingLevel", THINKING_LEVELS, remarks, sourceKey),
      verboseLevel: oneOf(entry, "verboseLevel", ["off", "on", "full"], remarks, sourceKey),
      sendPolicy: policy === "allow" || policy === "deny" ? policy : undefined,
    }),
  };
}

function parse(bytes: Buffer, name: string): unknown {
  const parsed = parseForeign(bytes, VALUES_MAX);
  if (parsed.ok || parsed.why === "too_complex" || bytes.length > HAND_BYTES_MAX) {
    return parsed.ok ? parsed.value : undefined;
  }
  const byHand = parseText(bytes.toString("utf8"), name);
  return byHand.ok ? byHand.value : undefined;
}

/**
 * Returns the sessions of one store. If it is missing or unreadable, reports this and returns an empty list.
 */
export async function readSourceSessions(
  source: SourceDir,
  path: readonly string[],
  now: number,
  remarks: Remarks,
): Promise<SourceSession[]> {
  const name = path.join("/");
  const bytes = await readWhole(source, path, STORE_BYTES_MAX);
  if (bytes === "absent") return [];
  if (typeof bytes === "string") {
    remarks.note(`session stores that were not read: ${UNREAD_WORDS[bytes]}`, name);
    return [];
  }
  const store = parse(bytes, name);
  if (!isObject(store)) {
    remarks.note("session stores that are not a readable JSON object", name);
    return [];
  }
  return readEntries(Object.entries(store), name, now, remarks);
}

/** Returns the sessions among the entries of one store. `name`: the name of the store, for remarks. */
export function readEntries(
  entries: Iterable<readonly [string, unknown]>,
  name: string,
  now: number,
  remarks: Remarks,
): SourceSession[] {
  const sessions: SourceSession[] = [];
  for (const [key, entry] of entries) {
    if (sessions.length === SESSIONS_MAX) {
      remarks.note(`sessions beyond the first ${SESSIONS_MAX} of a store, skipped`, name);
      break;
    }
    if (!isObject(entry) || key.length > 600 || key.trim() === "") {
      remarks.note("entries of the session store that are not sessions, skipped", key);
      continue;
    }
    const session = readEntry(key, entry, now, remarks);
    if (session !== undefined) sessions.push(session);
  }
  return sessions;
}
