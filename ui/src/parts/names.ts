// Owns the names of sessions: every view shows a session by its label. Names that were not read with a list
// are requested together. A name is requested again after a reconnect, and when its session has changed.

import { type Signal, signal } from "@preact/signals";
import { forkOrigin } from "../../../src/core/fork-key.ts";
import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import { withAgentName } from "../agents/face.ts";
import { agents } from "../agents/known.ts";
import { batched } from "../clock.ts";
import { listSessions, on, onSignedOut, whenConnected } from "../gateway.ts";
import { isNameless, type Named, ownName, shortKey } from "../sessions/own-name.ts";

/** Maximum number of keys in one request, a limit of the gateway. */
const KEYS_MAX = 200;
const NAMES_MAX = 5_000;
const BATCH_MS = 40;

/**
 * Returns the label of a session. If it has none, returns its name, for a main session that of its agent.
 * Otherwise returns the name of its origin if it is a fork, the first words of the conversation if the key
 * contains an id, else the short form of the key.
 */
export function sessionName(row: Named): string {
  const name = ownName(row) ?? `${nameOf(forkOrigin(row.key) ?? "")} (fork)`;
  return withAgentName(agents.value, row.key, name);
}

const known = new Map<string, Signal<string | undefined>>();
/** Keys of sessions whose names a view has shown. */
const named = new Set<string>();
/** Keys whose names must be requested. */
const wanted = new Set<string>();

/** Holds a session's name, or the short form of its key until the name is known. */
function nameSignal(key: string): Signal<string | undefined> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = signal(ownName({ key }));
  const [oldest] = known.keys();
  if (known.size >= NAMES_MAX && oldest !== undefined) {
    known.delete(oldest);
    named.delete(oldest);
  }
  known.set(key, made);
  return made;
}

export function learnNames(rows: readonly Named[]): void {
  for (const row of rows) {
    nameSignal(row.key).value = ownName(row);
    wanted.delete(row.key);
  }
}

const readWanted = batched(BATCH_MS, async () => {
  const keys = [...wanted].slice(0, KEYS_MAX);
  if (keys.length === 0) return;
  for (const key of keys) wanted.delete(key);
  // Ignore an error, because every name is requested again after a reconnect.
  const page = await listSessions({ keys, limit: KEYS_MAX, includeArchived: true }).catch(() => undefined);
  learnNames(page?.sessions ?? []);
  if (wanted.size > 0) readWanted();
});

function want(key: string): void {
  wanted.add(key);
  readWanted();
}

/** Names a session. A component that calls this is redrawn when the name changes. */
export function nameOf(key: string): string {
  if (key === NOT_VISIBLE) return key;
  named.add(key);
  if (!known.has(key)) want(key);
  const { value } = nameSignal(key);
  return value === undefined ? sessionName({ key }) : withAgentName(agents.value, key, value);
}

on("sessions", ({ key, change }) => {
  // A session without a name gets one with its first message, which changes only its state.
  const isUntitled = isNameless(key) && nameSignal(key).value === shortKey(key);
  if (named.has(key) && (change !== "state" || isUntitled)) want(key);
});
whenConnected(() => {
  for (const key of named) want(key);
});

onSignedOut(() => {
  known.clear();
  named.clear();
  wanted.clear();
});
