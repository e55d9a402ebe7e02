// WhatsApp as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { seenText, startWhatsApp, webHook } from "../../kit/platforms/whatsapp-server.ts";
import { said, whatsAppAccount } from "./kit.ts";

export async function openPlace(): Promise<Place> {
  const server = await startWhatsApp();
  return {
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
