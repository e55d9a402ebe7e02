// chat.file: who may read the files that agents sent, and how long they are kept.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { doing, talkingModel } from "../kit/talking-model.ts";
import { agentSettings } from "../tools/app.ts";
import { openHouse } from "./kit.ts";

const WORK = "agent:main:work";

async function open() {
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  const agents = [agentSettings("main", { workspace })];
  const house = await openHouse({ model: talkingModel(), choices: { agents } });
  const client = await house.client();
  return { house, client, workspace };
}

async function say(client: GatewayClient, sessionKey: string, message: string) {
  const { runId } = await client.request("chat.send", { sessionKey, message });
  await client.request("agent.wait", { runId });
}

/** Lets the agent send a file. Returns the file's id from the result of the call, and the last message. */
async function sendFile(client: GatewayClient, sessionKey: string, path: string) {
  await say(client, sessionKey, doing({ name: "send_file", arguments: { path } }));
  const { messages } = await client.request("chat.history", { sessionKey });
  const result = messages.findLast(({ role }) => role === "toolResult");
  const { fileId = "" } = JSON.parse(result === undefined ? "{}" : textOf(result));
  return { fileId: String(fileId), at: messages.at(-1)?.id ?? "" };
}

const files = (house: Awaited<ReturnType<typeof open>>["house"]) =>
  house.store.db.selectFrom("sent_files").select("name").orderBy("name").execute();

test("a file is read in parts, only through its session and its conversation", async () => {
  const { client, workspace } = await open();
  const bytes = Buffer.alloc(4_000_001, "parley");
  writeFileSync(join(workspace, "big.pdf"), bytes);
  const { fileId } = await sendFile(client, WORK, "big.pdf");
  const first = await client.request("chat.file", { sessionKey: WORK, fileId });
  expect(first).toMatchObject({ name: "big.pdf", mimeType: "application/pdf", bytes: 4_000_001 });
  let { content, nextOffset: offset } = first;
  for (let parts = 1; offset !== undefined && parts < 10; parts += 1) {
    const part = await client.request("chat.file", { sessionKey: WORK, fileId, offset });
    content += part.content;
    offset = part.nextOffset;
  }
  expect(Buffer.from(content, "base64").equals(bytes)).toBe(true);
  const elsewhere = client.request("chat.file", { sessionKey: "main", fileId });
  await expect(elsewhere).rejects.toMatchObject({ code: "NOT_FOUND" });
  const before = (await client.request("chat.history", { sessionKey: WORK })).sessionId ?? "";
  await client.request("sessions.reset", { key: WORK });
  const now = client.request("chat.file", { sessionKey: WORK, fileId });
  await expect(now).rejects.toMatchObject({ code: "NOT_FOUND" });
  expect(await client.request("chat.file", { sessionKey: WORK, sessionId: before, fileId })).toMatchObject({
    name: "big.pdf",
  });
});

test("SF2: a fork shows the files that were sent before it, also after its origin was deleted", async () => {
  const { house, client, workspace } = await open();
  for (const name of ["early.txt", "late.txt"]) writeFileSync(join(workspace, name), name);
  const early = await sendFile(client, WORK, "early.txt");
  const late = await sendFile(client, WORK, "late.txt");
  const fork = await client.request("sessions.fork", { sessionKey: WORK, at: early.at });
  const read = (fileId: string) => client.request("chat.file", { sessionKey: fork.key, fileId });
  expect(await read(early.fileId)).toMatchObject({ name: "early.txt" });
  await expect(read(late.fileId)).rejects.toMatchObject({ code: "NOT_FOUND" });
  await client.request("sessions.delete", { key: WORK });
  expect(await read(early.fileId)).toMatchObject({ name: "early.txt" });
  expect(await files(house)).toEqual([{ name: "early.txt" }]);
  await client.request("sessions.delete", { key: fork.key });
  expect(await files(house)).toEqual([]);
});
