// People on iMessage get answers from a real gateway process in their chat, even after it was killed.

import { expect, test } from "vitest";
import { startImsgDesk } from "../../kit/platforms/imsg-desk.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";

test("a message on iMessage is answered there, and the program imsg ends with the gateway, even if the gateway is killed", async () => {
  const desk = await startImsgDesk();
  const person = "+15550100";
  const config = { channels: { imessage: { command: [...desk.command], dmPolicy: "open" } } };
  const gateway = await startProcess({ config });
  await expect.poll(() => desk.watches()).toBe(1);
  const says = (text: string): void => {
    const chat = { chat_id: 7, chat_identifier: person, chat_guid: `iMessage;-;${person}`, is_group: false };
    const guid = `G-${desk.rows.length}`;
    desk.add({
      guid,
      ...chat,
      sender: person,
      is_from_me: false,
      text,
      created_at: "2026-01-01T00:00:00.000Z",
    });
  };
  says("hello there");
  await expect.poll(() => desk.sent.length).toBe(1);
  expect(desk.sent[0]?.to).toBe(person);
  await gateway.end("SIGKILL");
  await expect.poll(() => desk.programs()).toBe(0);
  says("are you still there?");
  const again = await startProcess({ home: gateway.home });
  await expect.poll(() => desk.sent.length).toBe(2);
  expect(await again.end("SIGTERM")).toBe(0);
  await expect.poll(() => desk.programs()).toBe(0);
});
