// WhatsApp as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { seenText, startWhatsApp, webHook } from "../../kit/platforms/whatsapp-server.ts";
import { said, whatsAppAccount } from "./kit.ts";

export async function openPlace(): Promise<Place> {
  const server = await startWhatsApp();
  const ada = "16505551234";
  const contacts = [{ profile: { name: "Ada" }, wa_id: ada }];
  const say = async (port: number, more: object, text = "read this"): Promise<string> => {
    const message = said(text, { from: ada, ...more }) as { readonly id: string };
    const url = `http://127.0.0.1:${port}/channels/whatsapp/default`;
    await server.post(url, webHook({ contacts, messages: [message] }));
    return message.id;
  };
  const ids: string[] = [];
  return {
    passedOn: [
      { what: "an own text", says: async (port) => ids.push(await say(port, {})) },
      { what: "a quote of an own text", says: (port) => say(port, { context: { id: ids[0], from: ada } }) },
      {
        ...{ what: "a forwarded text", source: "forwarded whatsapp" },
        says: (port) => say(port, { context: { forwarded: true } }),
      },
    ],
    account: whatsAppAccount(server.graphUrl),
    ids: { ada: "16505551234", bob: "16505555678" },
    isReady: () => true,
    async says(id, text, port) {
      const contacts = [{ profile: { name: "Somebody" }, wa_id: id }];
      const body = webHook({ contacts, messages: [said(text, { from: id })] });
      await server.post(`http://127.0.0.1:${port}/channels/whatsapp/default`, body);
    },
    seenBy: (id) => server.sent.filter(({ to }) => to === id).map(({ body }) => seenText(body)),
  };
}
