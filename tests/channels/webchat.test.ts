// Webchat passes the contract tests of outgoing channels: its platform is the gateway's own clients. Messages
// of people arrive through the gateway, each once.

import { expect, test } from "vitest";
import { createWebchat } from "../../src/channels/webchat.ts";
import type { ChatEvent } from "../../src/contract/events.ts";
import { outgoingContract, type Platform } from "../contract/channel.ts";
import { openHouse } from "../gateway/kit.ts";
import { endOf } from "../kit/engine/engine.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

const nothing = (): never => {
  throw new Error("our own socket has no such trouble");
};

/** Starts a gateway and a client that stands for a person. */
async function openWebchat() {
  const house = await openHouse();
  const client = await house.client();
  const shown: { to: string; text: string }[] = [];
  client.on("chat", ({ sessionKey, stopReason, message }: ChatEvent) => {
    if (stopReason !== "delivered") return;
    const text = message?.content.map((block) => (block.type === "text" ? block.text : "")).join("") ?? "";
    shown.push({ to: sessionKey, text });
  });
  const platform: Platform = {
    says: nothing,
    shown: () => shown,
    next: nothing,
    revoke: nothing,
    goAway: nothing,
    typed: nothing,
  };
  const webchat = createWebchat(house.engine.bus, { now: () => house.engine.now() } as never);
  // Lets each delivery cross the socket before the test checks it.
  const channel: typeof webchat = {
    ...webchat,
    async deliver(message) {
      const before = shown.length;
      const outcome = await webchat.deliver(message);
      await expect.poll(() => shown.length).toBe(before + 1);
      return outcome;
    },
  };
  return { house, client, channel, platform };
}

outgoingContract("webchat", async () => {
  const { channel, platform } = await openWebchat();
  const route = (to: string) => ({ channel: "webchat", to });
  return { channel, platform, routes: { direct: route(MAIN), group: route(RESEARCH) } };
}, ["threads", "edits", "typing"]);

test("I2: if a message is sent twice with the same key, it gives one run, and the answer goes to the sender", async () => {
  const { house, client } = await openWebchat();
  const finals: string[] = [];
  client.on("chat", ({ state, runId }: ChatEvent) => void (state === "final" && finals.push(runId)));
  const params = { sessionKey: MAIN, message: "hello", idempotencyKey: "w1" };
  await Promise.all([client.call("chat.send", params), client.call("chat.send", params)]);
  expect(await endOf(house.engine, "w1")).toMatchObject({
    state: "ok",
    route: { channel: "webchat", to: MAIN },
  });
  await expect.poll(() => finals).toEqual(["w1"]);
});
