// Runs the Discord channel with one account against a fake Discord, and sends messages as its users.

import { expect } from "vitest";
import { openChannel } from "../../../src/channels/registry.ts";
import { optional } from "../../../src/core/optional.ts";
import type { DiscordAccount } from "../../../src/features/discord/discord.ts";
import {
  type ChannelGround,
  type HostParts,
  listenAt,
  type Platform,
  recordingHost,
  type Trouble,
} from "../../contract/channel.ts";
import {
  ADA,
  BOT,
  DIRECT,
  type DiscordServer,
  type Json,
  ROOM,
  startDiscord,
  THREAD,
  TOKEN,
} from "../../kit/platforms/discord-server.ts";
import { OPEN_ACCOUNT } from "../../kit/platforms/open-account.ts";

export function discordAccount(restUrl: string, more: Partial<DiscordAccount> = {}): DiscordAccount {
  return {
    ...OPEN_ACCOUNT,
    ...{ channel: "discord", token: TOKEN, restUrl },
    ...more,
  };
}

/** Returns the text as people see it, without markup. */
function withoutMarks(text: string): string {
  return text
    .replace(/\*\*(.+?)\*\*/g, "$1")
    .replace(/(?<!\w)_(\S.*?)_(?!\w)/g, "$1")
    .replace(/`(.+?)`/g, "$1");
}

/** Matches a request that sends a text to a channel. */
export const SEND = /^POST \/channels\/\d+\/messages$/;

function trip(server: DiscordServer, trouble: Trouble): void {
  const fail = (status: number, body: Json, headers = {}, times = 1): void =>
    server.fault(SEND, { kind: "status", status, body, headers }, times);
  // The channel repeats an attempt once, so a failure must affect two requests.
  if (trouble.kind === "cut") server.fault(SEND, { kind: "cut" }, 2);
  if (trouble.kind === "serverError") fail(500, { message: "500: Internal Server Error", code: 0 }, {}, 2);
  if (trouble.kind === "refuse") fail(403, { message: "Missing Access", code: 50001 });
  if (trouble.kind === "limit") {
    const body = { message: "You are being rate limited.", retry_after: trouble.seconds, global: false };
    fail(429, body, { "retry-after": String(trouble.seconds), "x-ratelimit-scope": "user" });
  }
}

function platformOf(server: DiscordServer): Platform {
  let newest: Json;
  return {
    async says({ chat, from, name, text, mention, quote, media }) {
      const author = {
        ...ADA,
        ...optional({ id: from }),
        global_name: name ?? ADA.global_name,
      };
      newest = server.say({
        channel_id: { direct: DIRECT, group: ROOM, thread: THREAD }[chat],
        author,
        content: mention === true ? `<@${BOT.id}> ${text}` : text,
        ...(mention === true ? { mentions: [BOT] } : {}),
        ...(quote === undefined
          ? {}
          : { type: 19, referenced_message: { id: "1", author: ADA, content: quote } }),
        ...(media === undefined
          ? {}
          : {
              attachments: [
                {
                  ...{ id: server.nextId(), filename: media.name, content_type: media.mimeType },
                  ...{ size: media.bytes.length, url: server.keep(media.name, media.bytes) },
                },
              ],
            }),
      });
    },
    repeats: async () => server.gateway.dispatch("MESSAGE_CREATE", newest),
    edits: async (text) =>
      server.change(newest, { content: text, edited_timestamp: new Date().toISOString() }),
    shown: () =>
      server.sent.map(({ channelId, body }) => {
        const parent = server.channels.get(channelId)?.parent_id;
        const text = withoutMarks(body.content);
        return parent === undefined ? { to: channelId, text } : { to: parent, threadId: channelId, text };
      }),
    next: (trouble) => trip(server, trouble),
    revoke: () => {
      server.rules.token = "another";
      server.gateway.close(4004);
    },
    goAway: () => server.stop(),
    typed: () => server.asked.filter(({ path }) => path.endsWith("/typing")).length,
  };
}

/** Starts a fake Discord as the channel contract requires. */
export async function openDiscordGround(
  host: HostParts,
): Promise<ChannelGround & { readonly server: DiscordServer }> {
  const server = await startDiscord();
  const channel = await openChannel("discord", [discordAccount(server.restUrl)], host);
  const route = (to: string) => ({ channel: "discord", to, accountId: "default" });
  return {
    server,
    channel,
    platform: platformOf(server),
    routes: { direct: route(DIRECT), group: route(ROOM), thread: { ...route(ROOM), threadId: THREAD } },
  };
}

/**
 * Starts an account that records the messages it receives. `server`: the server of an earlier connection.
 */
export async function listeningDiscord(
  options: { readonly host?: HostParts; readonly server?: DiscordServer } = {},
) {
  const { host = recordingHost(), server = await startDiscord() } = options;
  const channel = await openChannel("discord", [discordAccount(server.restUrl)], host);
  const accounts = await listenAt(channel, host);
  const state = () => accounts.statuses()[0]?.state;
  await expect.poll(state).toBe("ready");
  const texts = () => host.received.map(({ text }) => text);
  /** Waits until at least this many messages have arrived. */
  const heard = async (count: number) => {
    await expect.poll(() => host.received.length).toBeGreaterThanOrEqual(count);
    return host.received;
  };
  return { server, host, channel, accounts, state, texts, heard };
}
