// A token for some sessions sees only the parts of the gateway that it can use.

import { expect, test } from "vitest";
import { mayMatchBeginning } from "../../../src/core/text/pattern.ts";
import { useConfigHome } from "../../kit/process/config-home.ts";
import { agentSettings } from "../../tools/app.ts";
import { type House, openHouse, operatorToken } from "../kit.ts";

const config = useConfigHome();
const SCOPED = "a-token-for-research-sessions";

async function scopedHouse(): Promise<House> {
  const agents = ["main", "research", "writer"].map((id) => agentSettings(id));
  return openHouse({
    choices: { agents },
    gateway: {
      tokens: [operatorToken(SCOPED, "operator.admin", ["agent:research:*", "cron:*"])],
    },
  });
}

test("sessions.list and sessions.patch hide the store's folder from a scoped token", async () => {
  const house = await scopedHouse();
  const scoped = await house.client({ token: SCOPED });
  expect(await scoped.call("sessions.list", {})).toMatchObject({ path: "" });
  const key = "agent:research:main";
  expect(await scoped.call("sessions.patch", { key, label: "mine" })).toMatchObject({ path: "" });
  const owner = await house.client();
  expect(await owner.call("sessions.list", {})).toMatchObject({ path: house.dir });
});

test("agents.list and /v1/models show a scoped token only the agents that it can use", async () => {
  const house = await scopedHouse();
  const scoped = await house.client({ token: SCOPED });
  const listed = await scoped.request("agents.list");
  expect(listed.agents.map(({ id }) => id)).toEqual(["research"]);
  expect(await scoped.call("status", {})).toMatchObject({ agents: 1 });
  const headers = { authorization: `Bearer ${SCOPED}` };
  const models = await (await fetch(`${house.http}/v1/models`, { headers })).json();
  expect(models).toMatchObject({ data: [{ id: "parley/research" }] });
  const other = await fetch(`${house.http}/v1/models/parley%2Fwriter`, { headers });
  expect(other.status).toBe(404);
  expect(await other.text()).not.toContain("main");
});

test("if the configuration has a secret in place of a list, the check does not reveal the secret", () => {
  const text = `{ tools: { sessions: { visibility: "hunter2-correct-horse" } }, agents: { defaults: { thinking: "pass word" } } }`;
  const told = config().problems(text).join("\n");
  expect(told).toContain("tools.sessions.visibility: must be one of self, tree, agent, all");
  expect(told).not.toMatch(/hunter2|pass word/);
});

test.each([
  ["agent:main:", ["*"], true],
  ["agent:main:", ["agent:*"], true],
  ["agent:main:", ["agent:main:main"], true],
  ["agent:main:", ["agent:m*:work"], true],
  ["agent:main:", ["agent:research:*"], false],
  ["agent:main:", ["cron:*", "hook:*"], false],
  ["agent:main:", ["agent"], false],
  ["agent:main:", [], false],
])("a key that begins with %s can match one of the patterns %j: %s", (start, patterns, may) => {
  expect(mayMatchBeginning(patterns, start)).toBe(may);
});

test("I9: a token spawns only sub-agents that it covers, over each interface", async () => {
  const agents = [
    agentSettings("main"),
    agentSettings("research", { subagents: { allowAgents: ["writer"] } }),
    agentSettings("writer"),
  ];
  const scoped = { token: SCOPED, role: "operator" as const, scopes: ["operator.admin" as const] };
  const tokens = [{ ...scoped, sessions: ["agent:research:*", "agent:gone:*"] }];
  const house = await openHouse({ choices: { agents }, gateway: { tokens } });
  const client = await house.client({ token: SCOPED });
  const spawn = (agentId: string) =>
    client.request("tools.invoke", {
      ...{ name: "sessions_spawn", args: { task: "look", agentId }, sessionKey: "agent:research:main" },
    });
  expect(await spawn("writer")).toMatchObject({ status: "forbidden", code: "spawn_denied" });
  expect(await spawn("research")).toMatchObject({ status: "accepted" });
  // A refusal lists only agents that the token covers.
  expect(await spawn("gone")).toMatchObject({ code: "spawn_denied", hint: "Allowed: research." });
});
