// The texts that the model of an agent gets: in a run, and from `agents.prompt`.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AgentSettings, TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { type HouseOptions, openHouse } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/cleanup.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { agentSettings } from "../app.ts";

const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";

/** Opens a gateway whose agent main has an instruction file and a skill. */
async function openGuided(more: Parameters<typeof agentSettings>[1] = {}, options: HouseOptions = {}) {
  const home = temporaryFolder();
  const workspace = join(home, "workspace");
  const folder = join(workspace, ".agents", "skills", "brew");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "SKILL.md"),
    "---\nname: brew\ndescription: Brewing tea.\n---\nUse hot water.\n",
  );
  writeFileSync(join(workspace, "AGENTS.md"), "Speak of tea.\n");
  const agents = [
    agentSettings("main", { workspace, instructions: "Be kind.", ...more }),
    agentSettings("b"),
  ];
  const house = await openHouse({ home, choices: { agents }, ...options });
  const client = await house.client();
  const ask = async (message: string): Promise<void> => {
    const { runId } = await client.request("chat.send", { sessionKey: "agent:main:main", message });
    expect(await client.request("agent.wait", { runId })).toMatchObject({ status: "ok" });
  };
  return { house, client, ask, workspace, folder };
}

test("S1: files come after the constant part and before the date, and a changed file is read for the next run", async () => {
  const model = scriptedModel(() => "done");
  const { ask, workspace } = await openGuided({}, { model });
  await ask("one");
  writeFileSync(join(workspace, "AGENTS.md"), "Speak of coffee.\n");
  await ask("two");
  const [one = "", two = ""] = model.requests.map(({ system }) => system);
  const order = [
    "You are the agent",
    "Be kind.",
    "Speak of tea.",
    "- brew: Brewing tea.",
    "Date at the start",
  ];
  const places = order.map((text) => one.indexOf(text));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBe(0);
  expect(two).toBe(one.replace("tea.\n\nSkills", "coffee.\n\nSkills"));
});

test("the tool skill returns the body of a skill, and an unknown name gets the names that exist", async () => {
  const model = scriptedModel((_request, call) =>
    call < 2 ? { toolCalls: [{ name: "skill", arguments: { name: ["brew", "brw"][call] } }] } : "done",
  );
  const { ask, client, folder } = await openGuided({}, { model });
  await ask("make tea");
  const [found, missing] = (model.requests.at(-1)?.entries ?? []).flatMap((entry) =>
    "role" in entry && entry.role === "toolResult" ? [JSON.stringify(entry.content)] : [],
  );
  expect(found).toContain("Use hot water.");
  expect(found).toContain(folder);
  expect(missing).toContain("Skills: brew.");
  const { tools } = await client.request("tools.catalog", {});
  expect(tools.map(({ name }) => name)).toContain("skill");
  const called = await client.request("tools.invoke", { name: "skill", args: { name: "brew" } });
  expect(called).toMatchObject({ status: "ok", name: "brew" });
});

test("each agent can do without instruction files and without skills", async () => {
  const model = scriptedModel(() => "done");
  const { ask, client } = await openGuided({ instructionFiles: false, skills: false }, { model });
  await ask("one");
  expect(model.requests[0]?.system).not.toMatch(/Speak of tea|brew/);
  expect(model.requests[0]?.tools.map(({ name }) => name)).not.toContain("skill");
  const { tools } = await client.request("tools.catalog", {});
  expect(tools.map(({ name }) => name)).not.toContain("skill");
});

test("agents.prompt returns the same parts as a run gets, with sizes and without secrets", async () => {
  const model = scriptedModel(() => "done");
  const { ask, client, workspace } = await openGuided({}, { model });
  await ask("one");
  const { parts, tools, skipped } = await client.request("agents.prompt", { agentId: "Main" });
  expect(parts.map(({ text }) => text).join("\n\n")).toBe(model.requests[0]?.system);
  expect(parts.map(({ title, file }) => file ?? title)).toEqual([
    "Rules of the runtime",
    "Instructions in the settings",
    join(workspace, "AGENTS.md"),
    "Skills",
    "Date",
  ]);
  const file = parts[2];
  expect(file?.bytes).toBe(Buffer.byteLength(file?.text ?? ""));
  expect(file?.tokens).toBe(Math.ceil((file?.bytes ?? 0) / 4));
  expect(tools.count).toBe(model.requests[0]?.tools.length);
  expect(skipped).toEqual([]);
  writeFileSync(join(workspace, "AGENTS.md"), `The key is ${KEY}.`);
  const hidden = await client.request("agents.prompt", { agentId: "main" });
  expect(JSON.stringify(hidden)).not.toContain(KEY);
  expect(JSON.stringify(hidden)).toContain("The key is");
});

test("the prompt of an ACP agent is not built here, and a token for some sessions sees no prompt", async () => {
  const runtime: AgentSettings["runtime"] = {
    type: "acp",
    ...{ command: ["x"], env: {}, permissions: "deny" as const, askSeconds: 1 },
    ...{ sessionTools: true, idleMinutes: 1 },
  };
  const partial: TokenSettings = {
    token: "a-token-for-main-only",
    role: "operator",
    scopes: ["operator.admin"],
    sessions: ["agent:main:*"],
  };
  const { house, client } = await openGuided({ runtime }, { gateway: { tokens: [partial] } });
  expect((await client.request("agents.prompt", { agentId: "main" })).parts).toEqual([]);
  const other = await house.client({ token: partial.token });
  await expect(other.request("agents.prompt", { agentId: "main" })).rejects.toThrow("every session");
  await expect(client.request("agents.prompt", { agentId: "c" })).rejects.toThrow("there is no agent");
});
