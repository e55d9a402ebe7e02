// Compares the runs of a replay with those of its record, in the ids of the record. Times are not compared:
// the machine of the record was slower or faster.

import { canonicalJson, objectOf } from "../../../core/json.ts";
import { type Entry, isCompaction, textOf } from "../../../core/shapes/message.ts";
import type { RecordedDelivery } from "../../../core/shapes/record/chain.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Difference, Player } from "./player.ts";
import type { Script, ScriptedRun } from "./script.ts";

/** A run of the replay, with what it wrote and sent. */
export interface PlayedRun {
  readonly run: Run;
  readonly entries: readonly Entry[];
  readonly deliveries: readonly RecordedDelivery[];
}

interface Step {
  readonly at: number;
  readonly step: string;
  readonly content: unknown;
  /** The call of a stopped run that was refused or not answered. Both are equal: neither had an effect. */
  readonly idle?: string | undefined;
}

function idleCall({ state }: Run, entry: Entry): string | undefined {
  if (state !== "aborted" || isCompaction(entry) || entry.role !== "toolResult") return undefined;
  const { id, toolName, isError } = entry;
  const text = textOf(entry);
  const isIdle =
    isError && (text.includes('"error":"not run: ') || text.startsWith("The run ended (aborted)"));
  return isIdle ? `${id} ${toolName}` : undefined;
}

function withoutTime(entry: Entry): unknown {
  const { timestamp: _, ...rest } = entry;
  return rest;
}

const sentText = ({ kind, route, text }: RecordedDelivery): unknown => ({
  ...{ kind, channel: route.channel, to: route.to, text },
});

/** Puts the results of each message, which are stored as they end, into the order of its calls. */
function byCall<T>(rows: readonly T[], entryOf: (row: T) => Entry): T[] {
  let message = 0;
  const placed = rows.map((row) => {
    const entry = entryOf(row);
    const isResult = !isCompaction(entry) && entry.role === "toolResult";
    if (!isResult) message += 1;
    return { row, message, place: isResult ? Number(entry.id.split(":").at(-1)) : -1 };
  });
  return placed.sort((a, b) => a.message - b.message || a.place - b.place).map(({ row }) => row);
}

/** Lists what can be seen of a run, in order. */
function stepsOf(
  run: Run,
  entries: readonly { entry: Entry; at: number }[],
  sent: readonly RecordedDelivery[],
): Step[] {
  const { acceptedAt, endedAt = acceptedAt } = run;
  const { text, provenance, context } = run.input;
  const begin = { session: run.sessionKey, kind: run.kind, hop: run.hop, text, provenance, context };
  const flow = run.flow === undefined ? undefined : { step: run.flow.step, turn: run.flow.turn };
  const { state, code, error, reply, model } = run;
  // A run that failed may have had answers that are not stored, and their usage is only in the sum.
  const usage = state === "ok" ? run.usage : undefined;
  return [
    { at: acceptedAt, step: "message", content: { ...begin, flow } },
    ...byCall(entries, ({ entry }) => entry).map(({ entry, at }, index) => ({
      at,
      step: `entry ${index + 1}`,
      content: withoutTime(entry),
      idle: idleCall(run, entry),
    })),
    { at: endedAt, step: "end", content: { state, code, error, reply, usage, model } },
    ...sent.map((one) => ({ at: endedAt, step: "delivery", content: sentText(one) })),
  ];
}

const NOTHING = "(nothing)";

/**
 * Returns whether two JSON values are certainly equal, the second one in the ids of the record. This is much
 * faster than to compare their text. A field without a value counts as absent.
 */
function isEqual(theirs: unknown, ours: unknown, toRecord: (text: string) => string): boolean {
  if (theirs === ours) return true;
  if (typeof theirs === "string") return typeof ours === "string" && theirs === toRecord(ours);
  if (Array.isArray(theirs) && Array.isArray(ours))
    return theirs.length === ours.length && theirs.every((item, at) => isEqual(item, ours[at], toRecord));
  const [a, b] = [objectOf(theirs), objectOf(ours)];
  if (a === undefined || b === undefined) return false;
  return (
    Object.keys(b).every((name) => b[name] === undefined || a[name] !== undefined) &&
    Object.keys(a).every((name) => isEqual(a[name], b[name], toRecord))
  );
}

function firstOf(
  one: ScriptedRun,
  recorded: readonly Step[],
  played: readonly Step[],
  toRecord: (text: string) => string,
) {
  const { runId, sessionKey } = one.run;
  for (let at = 0; at < Math.max(recorded.length, played.length); at += 1) {
    const [theirs, ours] = [recorded[at], played[at]];
    const isSame = theirs?.step === ours?.step;
    if (isSame && isEqual(theirs?.content, ours?.content, toRecord)) continue;
    const expected = theirs === undefined ? NOTHING : canonicalJson(theirs.content);
    const got = ours === undefined ? NOTHING : toRecord(canonicalJson(ours.content));
    if (expected === got && isSame) continue;
    if (theirs?.idle !== undefined && theirs.idle === toRecord(ours?.idle ?? "")) continue;
    const step = theirs?.step ?? ours?.step ?? "";
    return {
      at: theirs?.at ?? one.run.endedAt ?? one.run.acceptedAt,
      runId,
      sessionKey,
      step,
      expected,
      got,
    };
  }
  return undefined;
}

/** Returns the differences, the earliest first. */
export function differencesOf(player: Player, script: Script, played: readonly PlayedRun[]): Difference[] {
  const pairs = new Map<ScriptedRun, PlayedRun>();
  const found: Difference[] = [...player.differences];
  for (const one of played) {
    const recorded = player.match(one.run);
    if (recorded === undefined) {
      const got = player.ids.toRecord(
        canonicalJson({ session: one.run.sessionKey, text: one.run.input.text }),
      );
      const { runId, sessionKey, acceptedAt: at } = one.run;
      found.push({ at, runId, sessionKey, step: "run", expected: NOTHING, got });
    } else {
      pairs.set(recorded, one);
      const theirs = byCall(recorded.entries, ({ entry }) => entry);
      byCall(one.entries, (entry) => entry).forEach(({ id }, at) => {
        player.ids.pair(id, theirs[at]?.entry.id);
      });
    }
  }
  const toRecord = (text: string): string => player.ids.toRecord(text);
  const sentBy = Map.groupBy(script.record.deliveries, ({ runId }) => runId);
  for (const recorded of script.runs) {
    const { run, entries } = recorded;
    const own = pairs.get(recorded);
    if (own === undefined) {
      const expected = canonicalJson({ session: run.sessionKey, text: run.input.text });
      const { runId, sessionKey, acceptedAt: at } = run;
      found.push({ at, runId, sessionKey, step: "run", expected, got: NOTHING });
      continue;
    }
    const theirs = stepsOf(run, entries, sentBy.get(run.runId) ?? []);
    const ours = stepsOf(
      own.run,
      own.entries.map((entry) => ({ entry, at: 0 })),
      own.deliveries,
    );
    const first = firstOf(recorded, theirs, ours, toRecord);
    if (first !== undefined) found.push(first);
  }
  return found.sort((a, b) => a.at - b.at);
}
