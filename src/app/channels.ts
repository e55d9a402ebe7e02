// Connects channels to the gateway: opens them before the first delivery, and starts to listen once runs
// execute. Part of the composition root.
// CH1: without a channel in the configuration, no channel code is loaded. A message that arrives before the
//      stop is kept, or its platform sends it again.

import type { AccountStatus, Accounts } from "../channels/accounts.ts";
import type { Channel } from "../channels/channel.ts";
import type { CommandParts } from "../channels/commands/context.ts";
import type { Inbound } from "../channels/inbound.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { OutboxListener } from "../flows/delivery/outbox.ts";
import type { World } from "../world.ts";

interface ChannelWorld {
  readonly settings: Settings;
  readonly world: World;
}

/** The parts of the gateway that channels need. */
interface Rest {
  readonly engine: Engine;
  readonly outbound: OutboxListener;
  readonly checkModel: CommandParts["checkModel"];
}

export interface ChannelParts {
  /** The channels to which the outbox delivers; `open` fills it. */
  readonly channels: Map<string, Channel>;
  /**
   * Returns the handler of the deadline at which messages that one person sent in quick succession are
   * joined. Undefined until a channel is open.
   */
  burstDue(): DeadlineHandler | undefined;
  /** Loads the configured channels. Called before the first delivery. */
  open(rest: Rest): Promise<void>;
  /** Starts to listen for all accounts. Called once runs are executed. */
  listen(): void;
  /** Returns the status of each account in this process. */
  statuses(): readonly AccountStatus[];
  /** Stops receiving. */
  deafen(): Promise<void>;
  close(): Promise<void>;
}

/** Returns the channel parts of a gateway that has no configured channels. */
function none(): ChannelParts {
  const nothing = async (): Promise<void> => {};
  const channels = new Map<string, Channel>();
  const burstDue = () => undefined;
  return {
    channels,
    burstDue,
    open: nothing,
    listen: () => {},
    statuses: () => [],
    deafen: nothing,
    close: nothing,
  };
}

/** Builds the channels of the settings. */
export function channelParts({ settings, world }: ChannelWorld): ChannelParts {
  if (settings.channels.length === 0) return none();
  const channels = new Map<string, Channel>();
  const ends: (() => Promise<void> | void)[] = [];
  let inbound: Inbound | undefined;
  let accounts: Accounts | undefined;
  return {
    channels,
    burstDue: () => inbound?.burstDue,
    async open(rest) {
      const [{ hostOf, openInbound }, { openChannels }, { Accounts }, { followTyping }, { forgetInbound }] =
        await Promise.all([
          import("../channels/inbound.ts"),
          import("../channels/registry.ts"),
          import("../channels/accounts.ts"),
          import("../channels/typing.ts"),
          import("../channels/inbound/forget.ts"),
        ]);
      const { engine } = rest;
      const parts = { ...rest, settings, world };
      const incoming = openInbound(parts);
      inbound = incoming;
      accounts = new Accounts({
        commit: engine.commit,
        world,
        owner: engine.processId,
        leaseUntil: engine.leaseUntil,
      });
      const opened = await openChannels(settings.channels, (id) => hostOf(id, parts, incoming));
      for (const channel of opened) {
        channels.set(channel.id, channel);
        ends.push(async () => channel.close?.());
      }
      ends.push(forgetInbound(engine.commit, world));
      ends.push(followTyping({ bus: engine.bus, db: engine.store.db, world, channels }));
    },
    listen: () => accounts?.start([...channels.values()].flatMap((channel) => channel.accounts ?? [])),
    statuses: () => accounts?.statuses() ?? [],
    deafen: async () => accounts?.stop(),
    async close() {
      await accounts?.stop();
      for (const end of ends.splice(0).reverse()) await end();
    },
  };
}
