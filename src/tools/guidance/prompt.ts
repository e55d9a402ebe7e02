// Collects the parts of a session's system prompt, for its runs and for people who want to read it.

import { keyRulesOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { PromptParts, Today } from "../../core/rules/prompt/prompt.ts";
import { outsidePrefix } from "../../core/rules/tool-policy.ts";
import type { Session } from "../../core/shapes/session.ts";
import { displayKey } from "../../core/shapes/session-key.ts";
import type { AgentSettings, Settings } from "../../core/shapes/settings/settings.ts";
import type { OutsideSet } from "../tool.ts";
import type { Guidance } from "./guidance.ts";

export interface PromptSources {
  readonly settings: Settings;
  readonly session: Pick<Session, "key" | "instructions">;
  readonly agent: AgentSettings;
  readonly tools: readonly { readonly spec: { readonly name: string } }[];
  readonly guidance: Guidance | undefined;
  readonly memory?: string | undefined;
  readonly outside?: OutsideSet | undefined;
  readonly today?: Today | undefined;
  readonly context?: string | undefined;
}

export function promptOf(sources: PromptSources): PromptParts {
  const { settings, session, agent, tools, guidance, memory, outside, today, context } = sources;
  const toolNames = tools.map(({ spec }) => spec.name);
  return {
    agentId: agent.id,
    sessionKey: displayKey(session.key, agent.id, keyRulesOf(settings)),
    workspace: agent.workspace,
    toolNames,
    missingTools: (outside?.missing ?? []).map(
      ({ server, why }) => `- ${outsidePrefix(server)}*: the MCP server "${server}" is not available: ${why}`,
    ),
    ...optional({
      agentName: agent.name,
      instructions: agent.instructions,
      ofSession: session.instructions,
      files: guidance?.files,
      skills: toolNames.includes("skill") ? guidance?.skills : undefined,
      memory,
      today,
      context,
    }),
  };
}
