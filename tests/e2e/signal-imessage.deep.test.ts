// People on Signal and iMessage get answers from a real gateway process in their chat, even after it was
// killed.

import { expect, test } from "vitest";
import { startImsgDesk } from "../kit/platforms/imsg-desk.ts";
import { ADA, dataOf, from, OWN } from "../kit/platforms/signal-people.ts";
import { startSignalServer } from "../kit/platforms/signal-server.ts";
import { startProcess } from "../kit/process/gateway-process.ts";

test("a message on Signal is answered there, even if it arrived while the gateway was down", async () => {
  const server = await startSignalServer({ accounts: [OWN] });
  const config = { channels: { signal: { number: OWN.number, url: server.url, dmPolicy: "open" } } };
  const gateway = await startProcess({ config });
  await expect.poll(() => server.listeners()).toBe(1);
  const says = (text: string): void => {
    const dataMessage = dataOf(text);
    server.event(OWN.number, { envelope: { ...from(ADA), timestamp: dataMessage.timestamp, dataMessage } });
  };
  says("hello there");
  await expect.poll(() => server.sent.length).toBe(1);
  expect(server.sent[0]).toMatchObject({ account: OWN.number, to: ADA.number, isGroup: false });
  await gateway.end("SIGKILL");
  await expect.poll(() => server.listeners()).toBe(0);
  says("are you still there?");
  const again = await startProcess({ home: gateway.home });
  await expect.poll(() => server.sent.length).toBe(2);
  // The daemon sends an answered message again to a client without a position. It is not processed again.
  server.again();
  says("/whoami");
  await expect.poll(() => server.sent.length).toBe(3);
  expect(server.sent[2]?.message).toContain(ADA.number);
  expect(await again.end("SIGTERM")).toBe(0);
});

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
