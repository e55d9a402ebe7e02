// People on Signal get answers from a real gateway process in their chat, even after it was killed.

import { expect, test } from "vitest";
import { ADA, dataOf, from, OWN } from "../../kit/platforms/signal-people.ts";
import { startSignalServer } from "../../kit/platforms/signal-server.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";

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
