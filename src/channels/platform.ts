// Makes a channel of the accounts of one platform.
// A route without an account id uses the first account. If the named account is no longer configured, the
// lookup fails; it never falls back to another account.

import type { Guide } from "../cli/channels/guides.ts";
import type { Fields } from "../config/schema/setting.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { quoted } from "../core/text/cut.ts";
import { type Account, accountName } from "./accounts.ts";
import type { Channel, ChannelHost } from "./channel.ts";

const ID_SHOWN_CHARS = 60;

/** The code of a platform. */
export interface PlatformCode {
  /** Opens at least one account. */
  openAccounts(
    accounts: readonly never[],
    host: ChannelHost,
  ): readonly PlatformAccount[] | Promise<readonly PlatformAccount[]>;
}

/** A chat platform, as its feature declares it. */
export interface Platform {
  /** Keys of an account in the configuration file, besides those of every channel. */
  readonly settings: Fields;
  /** The keys of which one defines an account. Default: the required ones. */
  readonly definedBy?: readonly string[];
  /** Maximum number of characters in one part. Longer texts are sent in several parts. */
  readonly textMaxChars: number;
  /** Whether it sends files of agents to people. */
  readonly sendsFiles?: true;
  readonly guide: Guide;
  load(): Promise<PlatformCode>;
}

/** One account of a platform. All its accounts have the same methods, which are those of `Channel`. */
export interface PlatformAccount extends Pick<Channel, "deliver" | "typing" | "openThread" | "called"> {
  readonly accountId: string;
  /** Listens. An error after the signal was aborted is ignored. */
  readonly listen: Account["listen"];
  /** Tests at the platform whether the account works. Returns its name there, or throws the reason. */
  test(): Promise<string>;
  close?(): void | Promise<void>;
}

/** A channel whose accounts can be tested. */
export type PlatformChannel = Channel & Required<Pick<Channel, "test" | "close">>;

/** Makes a channel of at least one account. */
export function channelOf(
  id: string,
  lines: readonly PlatformAccount[],
  textMaxChars?: number,
): PlatformChannel {
  const lineOf = (accountId: string | undefined): Result<PlatformAccount> => {
    const line = accountId === undefined ? lines[0] : lines.find((one) => one.accountId === accountId);
    if (line !== undefined) return ok(line);
    const there = lines.map((one) => one.accountId).join(", ");
    const shown = quoted(accountId ?? "", ID_SHOWN_CHARS);
    return fail("channel_unknown", `the channel ${id} has no account ${shown}; its accounts are: ${there}`);
  };
  const typing: Channel["typing"] = async (route) => {
    const line = lineOf(route.accountId);
    if (line.ok) await line.value.typing?.(route);
  };
  const openThread: Channel["openThread"] = async (at, title) => {
    const line = lineOf(at.accountId);
    if (!line.ok) return line;
    return line.value.openThread?.(at, title) ?? fail("spawn_denied", `${id} has no threads`);
  };
  const called: Channel["called"] = async (call) => {
    const line = lineOf(call.accountId);
    return (line.ok ? line.value.called?.(call) : undefined) ?? { status: 404, body: "not found" };
  };
  const [first] = lines;
  return {
    id,
    ...optional({ textMaxChars }),
    async deliver(message) {
      const line = lineOf(message.route.accountId);
      return line.ok ? line.value.deliver(message) : { kind: "absent", error: line.error };
    },
    accounts: lines.map(({ accountId, listen }) => ({
      name: accountName(id, accountId),
      listen: (ear) =>
        listen(ear).catch((error: unknown) => {
          if (!ear.signal.aborted) throw error;
        }),
    })),
    ...(first?.typing && { typing }),
    ...(first?.openThread && { openThread }),
    ...(first?.called && { called }),
    async test(accountId) {
      const line = lineOf(accountId);
      if (!line.ok) return line;
      try {
        return ok(await line.value.test());
      } catch (error) {
        return fail("channel_failed", error instanceof Error ? error.message : String(error));
      }
    },
    async close() {
      await Promise.all(lines.map((line) => line.close?.()));
    },
  };
}
