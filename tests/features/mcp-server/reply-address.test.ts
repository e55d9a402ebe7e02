// The reply address of a message in an inbox always leads to the message's sender. If the sender no longer
// exists, the reply is an error.

import { expect, test } from "vitest";
import { type Answer, openPeer, type Peer, sendAs } from "../../gateway/clients/mcp.ts";
import { type House, openHouse, quiet } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";

const DESK = "agent:main:mcp:desk";
const ALL = { tools: { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } } };
const SPEAKER = "version 1";

interface Scene {
  readonly house: House;
  readonly dir: string;
  readonly desk: Peer;
  /** The sender's key. */
  readonly sender: string;
}

const openDesk = (house: House): Promise<Peer> =>
  openPeer(house, SPEAKER, { headers: { "x-parley-handle": "desk" } });

async function create(house: House, label: string): Promise<string> {
  return (await (await house.client()).request("sessions.create", { label })).key;
}

/** Opens a gateway in which a session with a label has written to the inbox of a client. */
async function openScene(): Promise<Scene> {
  const dir = temporaryFolder();
  const house = await openHouse({ dir, choices: ALL, play: () => "heard" });
  const desk = await openDesk(house);
  const sender = await create(house, "ops");
  await sendAs(house, sender, DESK, "which port?");
  await quiet(house);
  return { house, dir, desk, sender };
}

async function replyTo(desk: Peer): Promise<unknown> {
  const { messages } = (await desk.call("sessions_inbox")) as { messages: Answer[] };
  return messages.find(({ text }) => text === "which port?")?.replyTo;
}

const answer = (desk: Peer, sessionKey: unknown): Promise<Answer> =>
  desk.call("sessions_send", { sessionKey, message: "port 8080", timeoutSeconds: 0 });

/** Returns a session's history as JSON when all runs have ended. */
async function heard(house: House, sessionKey: string): Promise<string> {
  await quiet(house);
  return JSON.stringify(await (await house.client()).request("chat.history", { sessionKey }));
}

test("a reply address stays valid after a restart, and after its session gets a new label", async () => {
  const { house, dir, sender } = await openScene();
  await (await house.client()).request("sessions.patch", { key: sender, label: "operations" });
  await house.stop();
  const again = await openHouse({ dir, choices: ALL, play: () => "heard" });
  const desk = await openDesk(again);
  expect(await replyTo(desk)).toBe(sender);
  expect(await answer(desk, sender)).toMatchObject({ status: "accepted" });
  expect(await heard(again, sender)).toContain("port 8080");
});

test("a reply still reaches the sender after another session has taken over the sender's label", async () => {
  const { house, desk, sender } = await openScene();
  const client = await house.client();
  await client.request("sessions.patch", { key: sender, label: null });
  const other = await create(house, "ops");
  expect(await replyTo(desk)).toBe(sender);
  await answer(desk, await replyTo(desk));
  expect(await heard(house, sender)).toContain("port 8080");
  expect(await heard(house, other)).not.toContain("port 8080");
});
