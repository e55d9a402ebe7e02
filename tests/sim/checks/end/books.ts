// Reads all rows of a finished story once, for the checks at its end.

import type { Message, Provenance, Usage } from "../../../../src/core/shapes/message.ts";
import { type Entry, isCompaction } from "../../../../src/core/shapes/message.ts";
import type { Route } from "../../../../src/core/shapes/route.ts";
import type { SpawnFacts } from "../../../../src/core/shapes/spawn.ts";
import type { Story } from "../../story.ts";
import type { Row } from "../../world/database.ts";

export interface RunBook {
  readonly runId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly laneSeq: number;
  readonly kind: string;
  readonly state: string;
  readonly text: string;
  readonly injected: boolean;
  readonly provenance: Provenance | undefined;
  readonly route: Route | undefined;
  readonly chainId: string;
  readonly hop: number;
  readonly crashes: number;
  readonly crashesInRow: number;
  readonly acceptedAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly timeoutMs: number;
  readonly flowId: string | undefined;
  readonly step: string | undefined;
  readonly turn: number;
  readonly parentRunId: string | undefined;
  readonly callId: string | undefined;
  readonly reply: string;
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly usage: Usage | undefined;
}

export interface MessageBook {
  readonly seq: number;
  readonly sessionId: string;
  readonly sessionKey: string;
  readonly runId: string | undefined;
  readonly entry: Entry;
  readonly json: string;
}

export interface SessionBook {
  readonly key: string;
  readonly sessionId: string;
  readonly archived: boolean;
  readonly totalTokens: number;
  readonly spawn: SpawnFacts | undefined;
  readonly lastRoute: string | undefined;
}

/** All rows at the end of a story. */
export interface Books {
  readonly runs: readonly RunBook[];
  readonly runOf: ReadonlyMap<string, RunBook>;
  /** Runs by session, in lane order. */
  readonly lanes: ReadonlyMap<string, readonly RunBook[]>;
  readonly messages: readonly MessageBook[];
  readonly sessions: ReadonlyMap<string, SessionBook>;
  /** Ids of the transcripts that still exist. */
  readonly transcripts: ReadonlySet<string>;
  readonly flows: readonly Row[];
  readonly waits: readonly Row[];
  readonly deliveries: readonly Row[];
}

function optional<T>(value: unknown, read: (text: string) => T): T | undefined {
  return value === null || value === undefined ? undefined : read(String(value));
}

function runOf(row: Row): RunBook {
  const input = JSON.parse(String(row.input_json)) as {
    text: string;
    injected?: boolean;
    provenance?: Provenance;
  };
  return {
    runId: String(row.run_id),
    sessionKey: String(row.session_key),
    sessionId: String(row.session_id),
    laneSeq: Number(row.lane_seq),
    kind: String(row.kind),
    state: String(row.state),
    text: input.text,
    injected: input.injected === true,
    provenance: input.provenance,
    route: optional(row.route_json, (text) => JSON.parse(text) as Route),
    chainId: String(row.chain_id),
    hop: Number(row.hop),
    crashes: Number(row.crashes),
    crashesInRow: Number(row.crashes_in_row),
    acceptedAt: Number(row.accepted_at),
    startedAt: optional(row.started_at, Number),
    endedAt: optional(row.ended_at, Number),
    timeoutMs: Number(row.timeout_ms),
    flowId: optional(row.flow_id, String),
    step: optional(row.flow_step, String),
    turn: Number(row.flow_turn),
    parentRunId: optional(row.parent_run_id, String),
    callId: optional(row.call_id, String),
    reply: String(row.reply ?? ""),
    code: optional(row.code, String),
    error: optional(row.error, String),
    usage: optional(row.usage_json, (text) => JSON.parse(text) as Usage),
  };
}

function messageOf(row: Row): MessageBook {
  const json = String(row.entry_json);
  return {
    seq: Number(row.seq),
    sessionId: String(row.session_id),
    sessionKey: String(row.session_key),
    runId: optional(row.run_id, String),
    entry: JSON.parse(json) as Entry,
    json,
  };
}

function sessionOf(row: Row): SessionBook {
  const { last_channel: channel, last_to: to, last_thread_id: threadId } = row;
  return {
    key: String(row.key),
    sessionId: String(row.session_id),
    archived: row.archived_at !== null,
    totalTokens: Number(row.total_tokens),
    spawn: optional(row.spawn_json, (text) => JSON.parse(text) as SpawnFacts),
    lastRoute: channel === null ? undefined : routeName({ channel, to, threadId }),
  };
}

/** Returns a route as text that does not depend on the order of its fields. */
export function routeName(route: { channel: unknown; to: unknown; threadId?: unknown }): string {
  return [route.channel, route.to, route.threadId ?? ""].join(" ");
}

/** Returns the messages in an entry of the transcript. A compaction contains none. */
export function messageIn(book: MessageBook): Message[] {
  return isCompaction(book.entry) ? [] : [book.entry];
}

export async function readBooks(story: Story): Promise<Books> {
  const runs = (await story.look("select * from runs order by session_key, lane_seq")).map(runOf);
  const ids = await story.look("select session_id from session_ids");
  const sessions = (await story.look("select * from sessions")).map(sessionOf);
  return {
    runs,
    runOf: new Map(runs.map((run) => [run.runId, run])),
    lanes: Map.groupBy(runs, (run) => run.sessionKey),
    messages: (await story.look("select * from messages order by seq")).map(messageOf),
    sessions: new Map(sessions.map((one) => [one.key, one])),
    transcripts: new Set(ids.map((row) => String(row.session_id))),
    flows: await story.look("select * from flows order by created_at"),
    waits: await story.look("select * from waits"),
    deliveries: await story.look("select * from deliveries order by seq"),
  };
}
