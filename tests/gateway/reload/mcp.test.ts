// MCP servers that are replaced and removed while runs use them.

import { expect, test } from "vitest";
import { call } from "../../kit/model-server/steps.ts";
import { until } from "../../kit/until.ts";
import { openWitness, type Witness } from "../../tools/mcp-kit.ts";
import { PROGRAM } from "../../tools/mcp-program.ts";
import { type Json, openFollowing } from "./kit.ts";

const HELLO = "mcp__desk__hello";

/** Returns settings with the server "desk", which has these tools. */
function desk({ port }: Witness, tools: readonly string[], more: Json = {}): Json {
  const listed = tools.map((name) => ({ name, inputSchema: { type: "object" } }));
  const args = [PROGRAM, JSON.stringify({ witness: port, tools: listed })];
  const servers = { desk: { command: process.execPath, args, ...more } };
  return { tools: { mcp: { servers } }, labels: { mode: "off" } };
}

test("a replaced MCP server ends after the call under way, and further calls go to the new one", async () => {
  const witness = await openWitness();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const house = await openFollowing(
    async ({ toolResults: { length }, lastUserText, toolResults }) => {
      if (lastUserText.includes("short")) return length === 0 ? [call(HELLO)] : toolResults.join("\n");
      if (length === 0) return [call("mcp__desk__die-once")];
      await gates[length - 1]?.promise;
      return length < 3 ? [call(HELLO)] : toolResults.join("\n");
    },
    desk(witness, ["die-once", "hello"]),
  );
  const long = house.says("a long one");
  await witness.saw("call die-once");
  const old = await witness.life(0);
  let isDead = false;
  void old.dead.then(() => {
    isDead = true;
  });
  for (const env of [{ ROUND: "1" }, { ROUND: "2" }]) {
    house.put(desk(witness, ["hello"], { env }));
    house.reload();
  }
  await until(() => house.told.length >= 2);
  const { key: sessionKey } = await house.client.request("sessions.create", {});
  const sent = { message: "a short one", sessionKey, idempotencyKey: crypto.randomUUID() };
  const short = await (await house.client.agent(sent)).done;
  expect(short.result?.text).toContain("hello {}");
  expect([witness.lives.length, isDead]).toEqual([2, false]);
  old.socket.write("go\n");
  await old.dead;
  gates[0]?.resolve();
  await witness.saw("call hello", 2);
  house.put({ labels: { mode: "off" } });
  house.reload();
  await (await witness.life(1)).dead;
  gates[1]?.resolve();
  const answer = await long;
  expect(answer).toContain("answered at last");
  expect(answer).toContain("hello {}");
  expect(answer).toContain("it was removed from the configuration");
  expect(witness.lives).toHaveLength(2);
  expect(old.events.filter((event) => event === "call die-once")).toHaveLength(1);
  expect(house.told.flatMap(({ restart }) => restart)).toEqual([]);
});

test("a tool that a changed server no longer offers is not called, and a new server starts when it is needed", async () => {
  const witness = await openWitness();
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const house = await openFollowing(async ({ toolResults }) => {
    if (toolResults.length > 0) return toolResults.join("\n");
    asked.resolve();
    await gate.promise;
    return [call(HELLO)];
  });
  house.put(desk(witness, ["hello"]));
  house.reload();
  const first = house.says("hello");
  await asked.promise;
  await witness.life(0);
  house.put(desk(witness, ["hello"], { tools: ["other"] }));
  house.reload();
  gate.resolve();
  const answer = await first;
  expect(answer).toContain("it no longer has this tool");
  expect(witness.lives.flatMap(({ events }) => events)).not.toContain("call hello");
  house.put(desk(witness, ["hello"]));
  house.reload();
  expect(await house.says("hello again")).toContain("hello {}");
});
