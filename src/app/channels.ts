// Owns how channels are part of a gateway: opened before anything is delivered, listened at once runs are
// executed. Part of the composition root.
// CH1: without a channel in the configuration nothing of this is loaded.
// CH2: what comes in before the gateway is stopped is kept, or its platform brings it again.

import type { AccountStatus, Accounts } from "../channels/accounts.ts";
import type { Channel, ChannelHost } from "../channels/channel.ts";
import type { CommandParts } from "../channels/commands/context.ts";
import type { Inbound } from "../channels/inbound.ts";
import { COMMANDS } from "../core/command.ts";
import type { Settings } from "../core/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { Outbound } from "../flows/outbox.ts";
import { getCursor, putCursor } from "../store/channel-cursors.ts";
import type { World } from "../world.ts";

interface ChannelWorld {
  readonly settings: Settings;
  readonly world: World;
}

/** What channels need of the rest, once that is built. */
interface Rest {
  readonly engine: Engine;
  readonly outbound: Outbound;
  readonly checkModel: CommandParts["checkModel"];
}

export interface ChannelParts {
  /** What the outbox delivers by; `open` fills it. */
  readonly channels: Map<string, Channel>;
  /** Acts on the date at which messages of one person are joined. Absent: nothing comes in. */
  readonly burstDue?: DeadlineHandler;
  /** Loads the channels that are configured. To be called before anything is delivered. */
  open(rest: Rest): Promise<void>;
  /** Listens at their accounts. To be called once runs are executed. */
  listen(): void;
  /** How the accounts stand in this process. */
  statuses(): readonly AccountStatus[];
  /** Takes nothing in any more. */
  deafen(): Promise<void>;
  close(): Promise<void>;
}

/** Nothing comes in: there is webchat, which is put in by its owner. */
function none(): ChannelParts {
  const nothing = async (): Promise<void> => {};
  const channels = new Map<string, Channel>();
  return { channels, open: nothing, listen: () => {}, statuses: () => [], deafen: nothing, close: nothing };
}

/** What a channel is given. */
function hostOf(channel: string, { engine }: Rest, world: World, inbound: Inbound): ChannelHost {
  const { db } = engine.store;
  return {
    world,
    receive: (message) => inbound.receive(message),
    cursor: (accountId, name) => getCursor(db, { channel, accountId, name }),
    remember: (accountId, name, value) =>
      engine.commit((unit) => putCursor(unit.tx, { channel, accountId, name }, value)),
    commands: COMMANDS.map(({ name, description }) => ({ name, description })),
  };
}

/** The channels of the settings. */
export function channelParts({ settings, world }: ChannelWorld): ChannelParts {
  if (settings.channels.length === 0) return none();
  const channels = new Map<string, Channel>();
  const ends: (() => Promise<void> | void)[] = [];
  let inbound: Inbound | undefined;
  let accounts: Accounts | undefined;
  return {
    channels,
    burstDue: async (unit, key) => (inbound === undefined ? unit.now + 1_000 : inbound.burstDue(unit, key)),
    async open(rest) {
      const [{ openInbound }, { openChannels }, { Accounts }, { followTyping }, { forgetInbound }] =
        await Promise.all([
          import("../channels/inbound.ts"),
          import("../channels/registry.ts"),
          import("../channels/accounts.ts"),
          import("../channels/typing.ts"),
          import("../channels/inbound/forget.ts"),
        ]);
      const { engine } = rest;
      const way = openInbound({ ...rest, settings, world });
      inbound = way;
      accounts = new Accounts({
        commit: engine.commit,
        world,
        owner: engine.processId,
        leaseUntil: engine.leaseUntil,
      });
      const opened = await openChannels(settings.channels, (id) => hostOf(id, rest, world, way));
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
