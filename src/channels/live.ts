// Keeps the open channels equal to the settings: a channel whose accounts changed is opened again, and the
// old one is closed after its last call.
// LC1: no message is lost or handled twice. The old connection has stopped before the new one begins, and the
//      platform sends again what was not stored (CH1 of channel.ts).
// LC2: a text under way is sent to its end by the channel that began it.
// LC3: rules of admission are read for each message, so a change of them interrupts no connection.

import { isDeepStrictEqual } from "node:util";
import { optional } from "../core/optional.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import { PLATFORMS } from "../features.ts";
import type { Log } from "../world.ts";
import type { Accounts } from "./accounts.ts";
import type { Channel } from "./channel.ts";

/** Returns what a channel itself reads of its account. */
function connectionOf({ channel, ...account }: ChannelAccount): unknown[] {
  const values: Readonly<Record<string, unknown>> = { ...account };
  return ["accountId", ...Object.keys(PLATFORMS[channel]?.settings ?? {})].map((key) => values[key]);
}

interface Counted {
  readonly channel: Channel;
  /** Resolves when no call is under way. */
  whenFree(): Promise<void>;
}

type Call<A extends unknown[], T> = (...args: A) => Promise<T>;

function countCalls(channel: Channel): Counted {
  let count = 0;
  let free = Promise.resolve();
  let release = (): void => {};
  const countCalls =
    <A extends unknown[], T>(call: Call<A, T>): Call<A, T> =>
    async (...args) => {
      if (count === 0) ({ promise: free, resolve: release } = Promise.withResolvers<void>());
      count += 1;
      try {
        return await call(...args);
      } finally {
        count -= 1;
        if (count === 0) release();
      }
    };
  const { typing, openThread, called, test, deliver } = channel;
  return {
    channel: {
      ...channel,
      deliver: countCalls(deliver),
      ...optional({
        typing: typing && countCalls(typing),
        openThread: openThread && countCalls(openThread),
        called: called && countCalls(called),
        test: test && countCalls(test),
      }),
    },
    whenFree: () => free,
  };
}

interface Open extends Counted {
  readonly accounts: readonly ChannelAccount[];
}

/** Opens a channel for at least one account. */
export type OpenChannel = (id: string, accounts: readonly ChannelAccount[]) => Promise<Channel>;

interface LiveParts {
  /** The channels that the other parts see. */
  readonly channels: Map<string, Channel>;
  readonly accounts: Accounts;
  readonly open: OpenChannel;
  readonly log: Log;
}

export class LiveChannels {
  readonly #parts: LiveParts;
  readonly #open = new Map<string, Open>();
  /** Channels that still have calls. */
  readonly #leaving = new Set<Channel>();
  #listens = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /** Opens, replaces and closes the channels that differ from these accounts. */
  async follow(accounts: readonly ChannelAccount[]): Promise<void> {
    const ids = new Set([...this.#open.keys(), ...accounts.map(({ channel }) => channel)]);
    const changed = [...ids].filter((id) => {
      const own = accounts.filter(({ channel }) => channel === id);
      const before = this.#open.get(id)?.accounts ?? [];
      return !isDeepStrictEqual(own.map(connectionOf), before.map(connectionOf));
    });
    await Promise.all(
      changed.map((id) =>
        this.#replace(
          id,
          accounts.filter(({ channel }) => channel === id),
        ),
      ),
    );
  }

  /** Starts to listen, now and after each change. */
  listen(): void {
    this.#listens = true;
    for (const { channel } of this.#open.values()) this.#parts.accounts.start(channel.accounts ?? []);
  }

  /** Stops listening for good. */
  async deafen(): Promise<void> {
    this.#listens = false;
    await this.#parts.accounts.stop();
  }

  async close(): Promise<void> {
    await this.deafen();
    const all = [...[...this.#open.values()].map(({ channel }) => channel), ...this.#leaving];
    this.#open.clear();
    this.#leaving.clear();
    for (const channel of all) await channel.close?.();
  }

  async #replace(id: string, own: readonly ChannelAccount[]): Promise<void> {
    const { channels, accounts, open } = this.#parts;
    const old = this.#open.get(id);
    const next = own.length === 0 ? undefined : countCalls(await open(id, own));
    if (old !== undefined) await accounts.stop(old.channel.accounts);
    if (next === undefined) {
      channels.delete(id);
      this.#open.delete(id);
    } else {
      channels.set(id, next.channel);
      this.#open.set(id, { ...next, accounts: own });
      if (this.#listens) accounts.start(next.channel.accounts ?? []);
    }
    if (old !== undefined) void this.#leave(old);
  }

  async #leave({ channel, whenFree }: Open): Promise<void> {
    this.#leaving.add(channel);
    await whenFree();
    if (!this.#leaving.delete(channel)) return;
    await channel.close?.().catch((error: unknown) => {
      this.#parts.log.warn({ err: error, channel: channel.id }, "a channel could not be closed");
    });
  }
}
