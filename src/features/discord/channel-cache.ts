// Caches Discord's channels and roles: the kind and parent of a channel, and the role of the bot.
// An entry that is not in the cache is fetched. If the cache is full, the oldest entry is removed. Change
// events from Discord update the cache.

import { evictOldest } from "../../core/bounded.ts";
import { type Fields, numberOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { idOf } from "./ids.ts";
import { DiscordProblem } from "./problem.ts";
import type { Rest } from "./rest.ts";

/** Maximum number of channels and threads in the cache. */
const PLACES_MAX = 5_000;
const GUILDS_MAX = 200;
/**
 * Maximum numbers of roles and channels that are read per guild. Discord allows 250 roles, 500 channels, and
 * additional threads.
 */
const ROLES_MAX = 300;
const LISTED_MAX = 2_000;

/** Discord's channel type numbers. */
const DIRECT = 1;
const GROUP_DIRECT = 3;
const NEWS = 5;
const THREADS = [10, 11, 12];
const FORUMS = [15, 16];

export interface DiscordChannelInfo {
  readonly id: string;
  /** `forum`: has threads, but no messages of its own. `other`: its messages are ignored. */
  readonly kind: "direct" | "room" | "forum" | "thread" | "other";
  readonly name?: string;
  readonly guildId?: string;
  /** Id of the channel that contains this thread. Absent if this is not a thread. */
  readonly parentId?: string;
  /** True for an announcement channel, whose threads have a type of their own. */
  readonly isNews?: true;
}

/** The roles of a guild that are known so far. */
export interface Roles {
  readonly names: ReadonlyMap<string, string>;
  /** The role that Discord created for the bot. */
  readonly own?: string;
}

/** Converts Discord's data about a channel. `guildId`: the guild if the data does not name one. */
function channelInfoOf(channel: Fields, guildId?: string): DiscordChannelInfo | undefined {
  const id = idOf(channel.id);
  const type = numberOf(channel.type);
  if (id === undefined || type === undefined) return undefined;
  const name = textOf(channel.name);
  const facts = { id, ...optional({ name, guildId: idOf(channel.guild_id) ?? guildId }) };
  if (type === DIRECT) return { ...facts, kind: "direct" };
  if (type === GROUP_DIRECT) return { ...facts, kind: "other" };
  if (FORUMS.includes(type)) return { ...facts, kind: "forum" };
  if (type === NEWS) return { ...facts, kind: "room", isNews: true };
  if (!THREADS.includes(type)) return { ...facts, kind: "room" };
  const parentId = idOf(channel.parent_id);
  return parentId === undefined ? { ...facts, kind: "other" } : { ...facts, kind: "thread", parentId };
}

export class Places {
  readonly #rest: Rest;
  readonly #places = new Map<string, DiscordChannelInfo>();
  readonly #roles = new Map<string, Roles>();

  constructor(rest: Rest) {
    this.#rest = rest;
  }

  /** Updates the cache from an event. Ignores events of other types. */
  learn(type: string, data: Fields): void {
    const guildId = idOf(data.guild_id) ?? "";
    switch (type) {
      case "GUILD_CREATE": {
        const guild = idOf(data.id);
        for (const one of [...objectsOf(data.channels, LISTED_MAX), ...objectsOf(data.threads, LISTED_MAX)]) {
          this.#keep(channelInfoOf(one, guild));
        }
        return;
      }
      case "CHANNEL_CREATE":
      case "CHANNEL_UPDATE":
      case "THREAD_CREATE":
      case "THREAD_UPDATE":
        this.#keep(channelInfoOf(data));
        return;
      case "CHANNEL_DELETE":
      case "THREAD_DELETE":
        this.#places.delete(idOf(data.id) ?? "");
        return;
      case "GUILD_ROLE_CREATE":
      case "GUILD_ROLE_UPDATE":
      case "GUILD_ROLE_DELETE":
        this.#roles.delete(guildId);
        return;
      case "GUILD_DELETE":
        this.#roles.delete(idOf(data.id) ?? "");
    }
  }

  /** Returns the name of a channel, if it is in the cache. */
  nameOf(id: string): string | undefined {
    return this.#places.get(id)?.name;
  }

  /** Returns a channel. Returns undefined if it does not exist, or if the bot cannot see it. */
  async channelInfoOf(id: string, signal?: AbortSignal): Promise<DiscordChannelInfo | undefined> {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const asked = await seen(this.#rest.ask((api, inner) => api.channels.get(id, { signal: inner }), signal));
    const place = asked === undefined ? undefined : channelInfoOf(asked as unknown as Fields);
    this.#keep(place);
    return place;
  }

  /** Returns the roles of a guild. `botId` identifies the bot's own role. */
  async rolesOf(guildId: string, botId: string, signal?: AbortSignal): Promise<Roles> {
    const known = this.#roles.get(guildId);
    if (known !== undefined) return known;
    const asked = await seen(
      this.#rest.ask((api, inner) => api.guilds.getRoles(guildId, { signal: inner }), signal),
    );
    const names = new Map<string, string>();
    let own: string | undefined;
    for (const role of objectsOf(asked, ROLES_MAX)) {
      const id = idOf(role.id);
      if (id === undefined) continue;
      names.set(id, textOf(role.name) ?? id);
      if ((role.tags as Fields | undefined)?.bot_id === botId) own = id;
    }
    const roles = own === undefined ? { names } : { names, own };
    this.#roles.set(guildId, roles);
    evictOldest(this.#roles, GUILDS_MAX);
    return roles;
  }

  #keep(place: DiscordChannelInfo | undefined): void {
    if (place === undefined) return;
    this.#places.delete(place.id);
    this.#places.set(place.id, place);
    evictOldest(this.#places, PLACES_MAX);
  }
}

/** Resolves to undefined if Discord refuses the request. Rethrows every other failure. */
export async function seen<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof DiscordProblem && error.kind === "refused") return undefined;
    throw error;
  }
}
