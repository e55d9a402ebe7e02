// The settings of a tool call in a run that began with other settings.

import fc from "fast-check";
import { expect, test } from "vitest";
import { accessRulesOf, sessionViewer } from "../../src/access/access.ts";
import { narrowSettings } from "../../src/access/narrowed.ts";
import { readApproval } from "../../src/core/rules/approval/policy.ts";
import { hasNetwork, isSandboxed, type SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import { spawnableAgents } from "../../src/core/rules/spawn-policy.ts";
import { decideAccess } from "../../src/core/rules/visibility.ts";
import {
  APPROVAL_MODES,
  agentOf,
  SANDBOX_MODES,
  type Settings,
  VISIBILITY_MODES,
} from "../../src/core/shapes/settings/settings.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";

const IDS = ["main", "research", "other"];
const patterns = fc.subarray(["*", "main", "research", "r*", "other"]);

const settings: fc.Arbitrary<Settings> = fc
  .record({
    mode: fc.constantFrom(...VISIBILITY_MODES),
    enabled: fc.boolean(),
    allow: patterns,
    allowAgents: fc.subarray(["*", ...IDS]),
    approval: fc.constantFrom(undefined, ...APPROVAL_MODES),
    ownApproval: fc.constantFrom(undefined, ...APPROVAL_MODES),
    sandbox: fc.record({
      mode: fc.constantFrom(...SANDBOX_MODES),
      network: fc.boolean(),
      sessionToolsVisibility: fc.constantFrom("spawned" as const, "all" as const),
    }),
  })
  .map(({ mode, enabled, allow, allowAgents, sandbox, approval, ownApproval }) => {
    const plain = settingsWith();
    const more = { subagents: { allowAgents }, sandbox: { ...agentSettings("main").sandbox, ...sandbox } };
    const tools = { ...plain.tools, visibility: mode, agentToAgent: { enabled, allow } };
    const exec = { ...plain.tools.exec, approval };
    const agents = IDS.map((id) => agentSettings(id, more)).map((one) => ({
      ...one,
      tools: { ...one.tools, exec: { approval: ownApproval } },
    }));
    return { ...plain, tools: { ...tools, exec }, agents };
  });

const chains: fc.Arbitrary<SpawnChain> = fc
  .tuple(fc.constantFrom(...IDS), fc.constantFrom("main" as const, "other" as const))
  .map(([agentId, kind]) => [{ key: `agent:${agentId}:x`, agentId, kind, spawnDepth: 0 }]);

test("NR1: a run may do only what both settings allow", () => {
  fc.assert(
    fc.property(settings, settings, chains, fc.constantFrom(...IDS), (begun, now, chain, agentId) => {
      const both = narrowSettings(begun, now);
      const target = { key: `agent:${agentId}:y`, agentId, archived: false, ancestors: [] };
      const sees = (one: Settings) =>
        decideAccess("read", sessionViewer(chain, one), target, accessRulesOf(one)).allowed;
      const spawns = (one: Settings) =>
        spawnableAgents(agentOf(one, chain[0]), one).some(({ id }) => id === agentId);
      const isFree = (one: Settings) => !isSandboxed(chain, one);
      const reaches = (one: Settings) => hasNetwork(chain, one);
      const asksNobody = (one: Settings) =>
        readApproval(chain, one, { command: "true", folder: "/w" }).kind !== "asks";
      const runsRiskyCommands = (one: Settings) =>
        readApproval(chain, one, { command: "rm x", folder: "/w" }).kind !== "asks";
      // Without a setting, the sandbox decides about approvals.
      const isSame = isFree(begun) === isFree(now);
      const commands = isSame ? [asksNobody, runsRiskyCommands] : [];
      for (const may of [sees, spawns, isFree, reaches, ...commands])
        if (may(both)) expect([may(begun), may(now)]).toEqual([true, true]);
    }),
    { numRuns: 2_000 },
  );
});
