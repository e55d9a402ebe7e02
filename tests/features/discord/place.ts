// Discord as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { ADA, BOB, BOT, DIRECT, type Json, startDiscord } from "../../kit/platforms/discord-server.ts";
import { discordAccount } from "./ground.ts";

export const hasButtons = true;

export async function openPlace(): Promise<Place> {
  const server = await startDiscord();
  const chats: Record<string, string> = { [ADA.id]: DIRECT, [BOB.id]: server.nextId() };
  server.channels.set(chats[BOB.id] ?? "", { id: chats[BOB.id], type: 1, recipients: [BOB] });
  const say = (more: Json) => server.say({ channel_id: DIRECT, author: ADA, content: "read this", ...more });
  const quote = (author: Json, more: Json = {}) =>
    say({ type: 19, referenced_message: { id: "1", author, content: "a text", ...more } });
  const forwarded = {
    message_reference: { type: 1 },
    message_snapshots: [{ message: { content: "a text", attachments: [] } }],
  };
  return {
    passedOn: [
      { what: "a quote of the agent", says: () => quote(BOT) },
      { what: "a quote of an own text", says: () => quote(ADA) },
      { what: "a quote of Bob", source: `guest discord:${BOB.id}`, says: () => quote(BOB) },
      {
        ...{ what: "a forwarded text", source: "forwarded discord" },
        says: () => say({ ...forwarded, content: "" }),
      },
    ],
    account: discordAccount(server.restUrl),
    ids: { ada: ADA.id, bob: BOB.id },
    isReady: () => server.commands.length > 0 && server.gateway.identified.length > 0,
    says(id, content) {
      const author = id === BOB.id ? BOB : ADA;
      server.say({ channel_id: chats[id], author, content });
    },
    seenBy: (id) =>
      server.sent
        .filter(({ channelId }) => channelId === chats[id])
        .map(({ body }) => body.content.replace(/[`\\]/g, "")),
    buttons: {
      shown: () =>
        server.sent
          .filter(({ channelId }) => channelId === DIRECT)
          .map(({ id, body }) => ({
            ...{ id, text: body.content.replace(/[`\\]/g, "") },
            buttons: (body.components?.[0]?.components ?? []).map((one: Json) => [one.label, one.custom_id]),
          })),
      press(who, { id }, customId, isHasty = false) {
        const user = who === "bob" ? BOB : ADA;
        const press = server.press(id, { user, customId, afterMs: isHasty ? 900 : 5_000 });
        return () => press.response && (press.response.type === 6 ? "" : press.response.data.content);
      },
    },
  };
}
