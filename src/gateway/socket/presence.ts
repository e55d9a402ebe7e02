// Owns presence: the list of connected clients.
// Callers whose token covers every session see all entries; any other caller sees only its own.
// Changes are sent at most once per interval, and the text of an entry is limited.

import type { PresenceEntry } from "../../contract/frames.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Timer, World } from "../../world.ts";
import type { Caller } from "../auth.ts";
import type { Member } from "./connection.ts";

const TELL_EVERY_MS = 1_000;
/** Maximum number of listed entries, newest first; the others are only counted. */
const ENTRIES_MAX = 100;
/** Maximum characters of a client's description of itself that other clients see. */
const SHOWN_MAX_CHARS = 128;

export type Presence = ReturnType<typeof createPresence>;

function entryOf({ connId, params: { client } }: Member, ts: number, redactor: Redactor): PresenceEntry {
  // The text is cut, so that no client can fill the lists of other clients.
  const shortenText = (text: string): string => redactor.beginning(text, SHOWN_MAX_CHARS).text;
  return {
    connId,
    clientId: shortenText(client.id),
    version: shortenText(client.version),
    platform: shortenText(client.platform),
    mode: shortenText(client.mode),
    ts,
    ...(client.displayName === undefined ? {} : { host: shortenText(client.displayName) }),
    ...(client.instanceId === undefined ? {} : { instanceId: shortenText(client.instanceId) }),
  };
}

export function createPresence({ clock, redactor }: Pick<World, "clock" | "redactor">, changed: () => void) {
  const members = new Map<Member, PresenceEntry>();
  let version = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  const note = (): void => {
    version++;
    timer ??= clock.after(toldAt + TELL_EVERY_MS - clock.monotonic(), () => {
      timer = undefined;
      toldAt = clock.monotonic();
      changed();
    });
  };
  const newest = (): PresenceEntry[] => [...members.values()].reverse().slice(0, ENTRIES_MAX);
  return {
    /** Returns the number of changes so far. */
    version: () => version,
    count: () => members.size,
    add(member: Member): void {
      members.set(member, entryOf(member, clock.now(), redactor));
      note();
    },
    remove(member: Member): void {
      if (members.delete(member)) note();
    },
    /** Returns the entries that `member` may see. */
    seenBy(member: Member, seesAll: boolean): PresenceEntry[] {
      // The member's own entry is added here, because it is not registered yet while it connects.
      const others = seesAll ? newest().filter(({ connId }) => connId !== member.connId) : [];
      return [entryOf(member, clock.now(), redactor), ...others];
    },
    /** Returns the entries that this connected caller may see. */
    ofCaller: (caller: Caller, seesAll: boolean) =>
      seesAll ? newest() : [...members].flatMap(([one, entry]) => (one.caller === caller ? [entry] : [])),
    all: newest,
    close: () => timer?.cancel(),
  };
}
