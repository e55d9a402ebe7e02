// Replaces PostgreSQL's features for several processes, for several engines on one embedded store. It passes
// on hints, which a test can drop, and uses the test's clock.

import type { SharedStore, Store } from "../../../src/store/sql.ts";
import type { Clock } from "../../../src/world.ts";

export interface FakeWire {
  /** Opens the store for another process. */
  join(store: Store, clock: Clock): Store;
  /** Starts or stops dropping hints. Afterwards all processes are notified that hints may be missing. */
  cut(isCut: boolean): void;
  /** Notifies all processes that hints may be missing. */
  gap(): void;
}

interface Member {
  readonly address: string;
  readonly onText: (text: string) => void;
  readonly onGap: () => void;
}

export function fakeWire(): FakeWire {
  const members = new Set<Member>();
  let joined = 0;
  let isCut = false;
  const gap = (): void => {
    for (const member of members) member.onGap();
  };
  const sharedOf = (clock: Clock, store: Store): SharedStore => {
    let self: Member | undefined;
    joined += 1;
    const own = `address ${joined}`;
    return {
      address: own,
      now: () => clock.now(),
      urgently: store.transaction,
      syncClock: async () => {},
      isDeaf: () => false,
      async notify(texts, address) {
        await Promise.resolve();
        if (isCut) return;
        for (const member of members) {
          if (member !== self && member.address === (address ?? member.address))
            for (const text of texts) member.onText(text);
        }
      },
      async listen(onText, onGap) {
        const member = { onText, onGap, address: own };
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
        // Does nothing, because the other processes still use the store.
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
