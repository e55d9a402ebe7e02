// Connects channels to the gateway: opens them before the first delivery, starts to listen once runs execute,
// and follows changes of the settings. Part of the composition root.
// CH1: before the first channel in the configuration, no channel code is loaded. A message that arrives
//      before the stop is kept, or its platform sends it again.

import type { AccountStatus, Accounts } from "../channels/accounts.ts";
import type { Channel } from "../channels/channel.ts";
import type { CommandParts } from "../channels/commands/context.ts";
import type { Inbound } from "../channels/inbound.ts";
import type { LiveChannels, OpenChannel } from "../channels/live.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { World } from "../world.ts";
import type { Follower } from "./reload.ts";

type ChannelMap = Map<string, Channel>;

interface ChannelWorld {
  readonly settings: Settings;
  readonly world: World;
}

/** The parts of the gateway that channels need. */
interface Rest {
  readonly engine: Engine;
  readonly checkModel: CommandParts["checkModel"];
  readonly guidance: CommandParts["guidance"];
}

export interface ChannelParts {
  /** The channels to which the outbox delivers; `open` fills it. */
  readonly channels: ChannelMap;
  /**
   * Returns the handler of the deadline at which messages that one person sent in quick succession are
   * joined. Undefined until a channel is open.
   */
  burstDue(): DeadlineHandler | undefined;
  /** Loads the configured channels. Called before the first delivery. */
  open(rest: Rest): Promise<void>;
  /** Closes the channels, also after `open` has failed. */
  close(): Promise<void>;
  /** Opens and closes the channels that differ from the settings. */
  readonly apply: Follower;
  /** Starts to listen for all accounts, now and after each change. Called once runs are executed. */
  listen(): void;
  /** Returns the status of each account in this process. */
  statuses(): readonly AccountStatus[];
  /** Stops receiving. */
  deafen(): Promise<void>;
}

interface Loaded {
  readonly inbound: Inbound;
  readonly accounts: Accounts;
  readonly live: LiveChannels;
  endTyping(): void;
}

/** Loads the code of the channels, and builds what they share. */
async function load({ settings, world }: ChannelWorld, rest: Rest, channels: ChannelMap): Promise<Loaded> {
  const [{ hostOf, openInbound }, { openChannel }, { Accounts }, { LiveChannels }, typing] =
    await Promise.all([
      import("../channels/inbound.ts"),
      import("../channels/registry.ts"),
      import("../channels/accounts.ts"),
      import("../channels/live.ts"),
      import("../channels/typing.ts"),
    ]);
  const { engine } = rest;
  const { commit, processId: owner, leaseUntil, bus, store } = engine;
  const parts = { ...rest, settings, world };
  const inbound = openInbound(parts);
  const accounts = new Accounts({ commit, world, owner, leaseUntil });
  const open: OpenChannel = (id, own) => openChannel(id, own, hostOf(id, parts, inbound));
  return {
    inbound,
    accounts,
    live: new LiveChannels({ channels, accounts, open, log: world.log }),
    endTyping: typing.followTyping({ bus, db: store.db, world, channels }),
  };
}

/** Builds the channels of the settings. */
export function channelParts(given: ChannelWorld): ChannelParts {
  const { settings } = given;
  const channels: ChannelMap = new Map();
  let rest: Rest | undefined;
  let loaded: Loaded | undefined;
  let listens = false;
  const apply = async (): Promise<void> => {
    if (rest === undefined || (loaded === undefined && settings.channels.length === 0)) return;
    if (loaded === undefined) {
      loaded = await load(given, rest, channels);
      if (listens) loaded.live.listen();
    }
    await loaded.live.follow(settings.channels);
  };
  const close = async (): Promise<void> => {
    listens = false;
    await loaded?.live.close();
    loaded?.endTyping();
  };
  return {
    channels,
    burstDue: () => loaded?.inbound.burstDue,
    async open(parts) {
      rest = parts;
      await apply();
    },
    close,
    apply,
    listen() {
      listens = true;
      loaded?.live.listen();
    },
    statuses: () => loaded?.accounts.statuses() ?? [],
    async deafen() {
      listens = false;
      await loaded?.live.deafen();
    },
  };
}
