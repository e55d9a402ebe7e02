// Calls tools in this process, as a run of the session would. Throws if a tool fails.

import { sessionViewer } from "../src/access/access.ts";
import type { Session } from "../src/core/shapes/session.ts";
import type { Settings, VisibilityMode } from "../src/core/shapes/settings/settings.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { Store } from "../src/store/sql.ts";
import { callTool, toolNames } from "../src/tools/catalog.ts";
import type { ToolResult } from "../src/tools/tool.ts";

export interface Called {
  readonly store: Store;
  readonly engine: Engine;
  readonly settings: Settings;
}

export type ToolCall = (name: string, args: Record<string, unknown>) => Promise<ToolResult>;

/**
 * Returns a function that calls tools with this visibility mode. Access to other agents' sessions is enabled.
 */
export function callerOf(parts: Called, session: Session, mode: VisibilityMode): ToolCall {
  const { tools } = parts.settings;
  const agentToAgent = { ...tools.agentToAgent, enabled: true, allow: ["*"] };
  const settings: Settings = { ...parts.settings, tools: { ...tools, visibility: mode, agentToAgent } };
  const [agent] = settings.agents;
  if (agent === undefined) throw new Error("no agent");
  const context = {
    settings,
    db: parts.store.db,
    engine: parts.engine,
    session,
    agent,
    viewer: sessionViewer([session], settings),
    chain: [session] as const,
    toolNames: toolNames(),
    signal: new AbortController().signal,
  };
  return async (name, args) => {
    const result = await callTool(context, { callId: "bench", attempt: 1, name, arguments: args });
    if (result.status === "error" || result.status === "forbidden") throw new Error(JSON.stringify(result));
    return result;
  };
}
