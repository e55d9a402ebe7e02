// iMessage as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { startImsgDesk } from "../../kit/platforms/imsg-desk.ts";
import { OPEN_ACCOUNT } from "../../kit/platforms/open-account.ts";

export async function openPlace(): Promise<Place> {
  const desk = await startImsgDesk();
  const own = {
    channel: "imessage",
    command: desk.command,
    names: ["Parley"],
    attachmentFolders: [],
  } as const;
  return {
    // A direct chat has only texts of the person and the agent.
    passedOn: [],
    account: { ...OPEN_ACCOUNT, ...own },
    ids: { ada: "+15550100", bob: "+15550101" },
    isReady: () => desk.watches() === 1,
    says(id, text) {
      const chat = { chat_identifier: id, chat_guid: `iMessage;-;${id}`, is_group: false };
      const facts = { chat_id: Number(id), sender: id, is_from_me: false };
      const guid = `G-${desk.rows.length}`;
      desk.add({ ...chat, ...facts, guid, text, created_at: "2026-01-01T00:00:00.000Z" });
    },
    seenBy: (id) => desk.sent.filter(({ to }) => to === id).map(({ text }) => text),
  };
}
