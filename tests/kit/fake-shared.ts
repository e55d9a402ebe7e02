// Owns what PostgreSQL gives the processes that share it, for several engines over one embedded store: a wire
// that can be cut, and the clock of the test.

import type { SharedStore, Store } from "../../src/store/sql.ts";
import type { Clock } from "../../src/world.ts";

export interface FakeWire {
  /** The store as one more process sees it. */
  join(store: Store, clock: Clock): Store;
  /** Hints are lost from now on, or pass again: then everybody is told of the gap. */
  cut(isCut: boolean): void;
  /** Somebody may have missed something. */
  gap(): void;
}

interface Member {
  readonly onText: (text: string) => void;
  readonly onGap: () => void;
}

export function fakeWire(): FakeWire {
  const members = new Set<Member>();
  let isCut = false;
  const gap = (): void => {
    for (const member of members) member.onGap();
  };
  const sharedOf = (clock: Clock, store: Store): SharedStore => {
    let self: Member | undefined;
    return {
      now: () => clock.now(),
      urgently: store.transaction,
      syncClock: async () => {},
      async notify(texts) {
        await Promise.resolve();
        if (isCut) return;
        for (const member of members) {
          if (member !== self) for (const text of texts) member.onText(text);
        }
      },
      async listen(onText, onGap) {
        const member = { onText, onGap };
        self = member;
        members.add(member);
        return async () => {
          members.delete(member);
        };
      },
    };
  };
  return {
    join: (store, clock) => {
      const { transcriptPath: _path, writtenTranscript: _written, ...rest } = store;
      return {
        ...rest,
        transcriptPath: () => undefined,
        writtenTranscript: () => undefined,
        shared: sharedOf(clock, store),
        // The others still use it.
        close: async () => {},
      };
    },
    cut(cut) {
      isCut = cut;
      if (!cut) gap();
    },
    gap,
  };
}
