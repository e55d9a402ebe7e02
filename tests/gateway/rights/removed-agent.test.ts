// The actions that are allowed on a session whose agent was removed from the configuration.

import { expect, test } from "vitest";
import { agentSettings } from "../../tools/app.ts";
import { openHouse } from "../kit.ts";

test("if an agent was removed, its sessions cannot call tools, not even with the default agent's workspace and rights", async () => {
  const agents = [agentSettings("main"), agentSettings("boxed")];
  const before = await openHouse({ choices: { agents } });
  await before.stop();
  const house = await openHouse({ dir: before.dir, choices: { agents: agents.slice(0, 1) } });
  const client = await house.client();
  const call = { name: "exec", arguments: { command: "echo ran" }, sessionKey: "agent:boxed:main" };
  const refused = await client.call("tools.invoke", call).catch((error: Error) => error);
  expect(String(refused)).toContain('agent "boxed" is no longer configured');
});
