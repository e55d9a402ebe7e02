// A real gateway process with a bot on Discord: messages are answered in their channel, even after the
// process was killed.

import { expect, test } from "vitest";
import { BOT, DIRECT, GUILD, ROOM, startDiscord, THREAD, TOKEN } from "../../kit/platforms/discord-server.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";

test("I2: messages in direct chats and in a thread, and those sent while the process is down, are answered in their chat", async () => {
  const server = await startDiscord();
  const discord = { token: TOKEN, restUrl: server.restUrl, dmPolicy: "open", groups: { [GUILD]: {} } };
  const home = homeWith({ inbound: { debounceMs: 0 }, channels: { discord } });
  const first = await startProcess({ home });
  await expect.poll(() => server.commands.length).toBeGreaterThan(5);
  server.say({ channel_id: ROOM, content: "say not for you" });
  server.say({ channel_id: THREAD, content: `<@${BOT.id}> say it is a thread`, mentions: [BOT] });
  server.say({ channel_id: DIRECT, content: "say hello to me" });
  const answers = () => new Set(server.sent.map(({ channelId, body }) => `${channelId} ${body.content}`));
  const both = [`${THREAD} it is a thread`, `${DIRECT} hello to me`];
  await expect.poll(answers).toEqual(new Set(both));
  await first.end("SIGKILL");
  server.say({ channel_id: DIRECT, content: "say you are back" });
  const second = await startProcess({ home });
  const all = new Set([...both, `${DIRECT} you are back`]);
  await expect.poll(answers).toEqual(all);
  expect(server.sent).toHaveLength(3);
  expect(`${first.stderr()}${second.stderr()}`).not.toContain(TOKEN);
  expect(await second.end("SIGTERM")).toBe(0);
});
