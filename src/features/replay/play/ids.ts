// Translates between the ids of a replay and those of its record. A replay makes ids of its own; each is
// paired with the recorded one when the step that made it is found in the record.

import { UUIDS } from "../../../core/ids.ts";

const uuidsIn = (text: string): readonly string[] => text.match(UUIDS) ?? [];

export class IdPairs {
  readonly #recorded = new Map<string, string>();
  readonly #own = new Map<string, string>();
  #made = 0;

  /** Makes an id. Ids sort in the order in which they were made. */
  readonly make = (): string => {
    this.#made += 1;
    return `00000000-0000-7000-8000-${this.#made.toString(16).padStart(12, "0")}`;
  };

  /** Pairs the ids in two texts that name the same thing, in order. An id that is paired keeps its pair. */
  pair(own: string | undefined, recorded: string | undefined): void {
    if (own === undefined || this.#recorded.get(own) === recorded) return;
    const [ours, theirs] = [uuidsIn(own), uuidsIn(recorded ?? "")];
    if (ours.length !== theirs.length) return;
    ours.forEach((id, at) => {
      const other = theirs[at];
      if (other === undefined || this.#recorded.has(id) || this.#own.has(other)) return;
      this.#recorded.set(id, other);
      this.#own.set(other, id);
    });
  }

  toRecord(text: string): string {
    return text.replace(UUIDS, (id) => this.#recorded.get(id) ?? id);
  }

  toReplay(text: string): string {
    return text.replace(UUIDS, (id) => this.#own.get(id) ?? id);
  }

  /** Like `toReplay`, for all texts in a JSON value. */
  valueToReplay<T>(value: T): T {
    const text = JSON.stringify(value);
    const own = this.toReplay(text);
    return own === text ? value : (JSON.parse(own) as T);
  }
}
