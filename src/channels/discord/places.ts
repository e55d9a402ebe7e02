// Owns what is known of the places on Discord: what a channel is, whose thread it is, which role is the
// bot's.
// DL1: what is not known is asked for; what is known is bounded, the oldest is forgotten first.
// DL2: what Discord tells of a change replaces what was known.

import { dropOldest } from "../../core/bounded.ts";
import { optional } from "../../core/optional.ts";
import { type Fields, objectsOf, textOf } from "../fields.ts";
import { idOf, numberOf } from "./fields.ts";
import { DiscordProblem } from "./problem.ts";
import type { Rest } from "./rest.ts";

/** Channels and threads that are remembered. */
const PLACES_MAX = 5_000;
const GUILDS_MAX = 200;
/** Discord allows 250 roles and 500 channels; threads come on top. */
const ROLES_MAX = 300;
const LISTED_MAX = 2_000;

/** The numbers that Discord gives to kinds of channels. */
const DIRECT = 1;
const GROUP_DIRECT = 3;
const NEWS = 5;
const THREADS = [10, 11, 12];
const FORUMS = [15, 16];

export interface Place {
  readonly id: string;
  /** `forum`: nothing is said in it but in threads. `other`: nobody is answered there. */
  readonly kind: "direct" | "room" | "forum" | "thread" | "other";
  readonly name?: string;
  readonly guildId?: string;
  /** Of a thread: the channel that it belongs to. */
  readonly parentId?: string;
  /** A channel of announcements, whose threads are of a kind of their own. */
  readonly isNews?: true;
}

/** What is known of the roles of a guild. */
export interface Roles {
  readonly names: ReadonlyMap<string, string>;
  /** The role that Discord made for the bot. */
  readonly own?: string;
}

/** What Discord says of a channel. `guildId`: where it does not say so itself. */
function placeOf(channel: Fields, guildId?: string): Place | undefined {
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
  readonly #places = new Map<string, Place>();
  readonly #roles = new Map<string, Roles>();

  constructor(rest: Rest) {
    this.#rest = rest;
  }

  /** Takes in what an event tells of places. Events that tell nothing of them are left alone. */
  learn(type: string, data: Fields): void {
    const guildId = idOf(data.guild_id) ?? "";
    switch (type) {
      case "GUILD_CREATE": {
        const guild = idOf(data.id);
        for (const one of [...objectsOf(data.channels, LISTED_MAX), ...objectsOf(data.threads, LISTED_MAX)]) {
          this.#keep(placeOf(one, guild));
        }
        return;
      }
      case "CHANNEL_CREATE":
      case "CHANNEL_UPDATE":
      case "THREAD_CREATE":
      case "THREAD_UPDATE":
        this.#keep(placeOf(data));
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

  /** What this place is called, if that is known. */
  nameOf(id: string): string | undefined {
    return this.#places.get(id)?.name;
  }

  /** What this place is. Undefined: it is not there, or the bot can't see it. */
  async placeOf(id: string, signal?: AbortSignal): Promise<Place | undefined> {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const asked = await seen(this.#rest.ask((api, inner) => api.channels.get(id, { signal: inner }), signal));
    const place = asked === undefined ? undefined : placeOf(asked as unknown as Fields);
    this.#keep(place);
    return place;
  }

  /** The roles of a guild, for a bot of this id. */
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
    dropOldest(this.#roles, GUILDS_MAX);
    return roles;
  }

  #keep(place: Place | undefined): void {
    if (place === undefined) return;
    this.#places.delete(place.id);
    this.#places.set(place.id, place);
    dropOldest(this.#places, PLACES_MAX);
  }
}

/** What is refused can't be seen; every other failure is told. */
export async function seen<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof DiscordProblem && error.kind === "refused") return undefined;
    throw error;
  }
}
