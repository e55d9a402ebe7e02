// Executes a claimed run as a turn of an ACP agent: names its program, writes its introduction, offers the
// session tools and answers its requests for permission.
// A session that requires a sandbox is refused, because the program can't run in one. During the turn, calls
// that the program makes with its session's pass belong to this run.
// PD1: a permission request is denied if there is no answer in time, the run ends, the gateway stops or the
//      store fails.

import { keyRulesOf } from "../access/access.ts";
import { AcpAgents } from "../agent/acp/acp.ts";
import type { AskPermission, SessionTools } from "../agent/acp/connection.ts";
import { AcpMemories } from "../agent/acp/memory.ts";
import { plainEnvironment } from "../agent/acp/process.ts";
import type { TurnEnd } from "../agent/loop/loop.ts";
import { introduce } from "../agent/loop/outside-prompt.ts";
import { optional } from "../core/optional.ts";
import { askingVariables } from "../core/rules/approval/acp-programs.ts";
import type { Entry } from "../core/shapes/message.ts";
import type { PermissionDecision } from "../core/shapes/permission.ts";
import type { Session } from "../core/shapes/session.ts";
import { displayKey } from "../core/shapes/session-key.ts";
import type { AcpRuntime, AgentSettings, Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { LaneHandle } from "../engine/run/execution.ts";
import { closePermission, openPermission, type PermissionRequest } from "../flows/permission.ts";
import type { RunTrace } from "../telemetry/traces.ts";
import type { Passes } from "../tools/passes.ts";
import type { Log, World } from "../world.ts";

/** Dependencies of turns of ACP agents. The first such turn creates them. */
export interface AcpHost {
  readonly agents: AcpAgents;
  readonly passes: Passes;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The program that offers a session's tools over MCP, and the gateway's address for it. */
  readonly mcp: { readonly launcher: readonly string[]; readonly gatewayUrl: () => string };
}

/** Opens the host of ACP agents' turns. Starts nothing before the first turn. */
export function openAcpHost(
  parts: Omit<AcpHost, "agents"> & { world: World; version: string; dir: string },
): AcpHost {
  const { world, version, dir, passes, environment, mcp } = parts;
  const memories = new AcpMemories(dir, world.clock);
  const closed = (sessionKey: string): void => passes.revoke(sessionKey);
  const agents = new AcpAgents({ world, memories, version, closed });
  return { agents, passes, environment, mcp };
}

export interface AcpRun {
  readonly handle: LaneHandle;
  readonly session: Session;
  readonly agent: AgentSettings;
  readonly runtime: AcpRuntime;
  readonly entries: readonly Entry[];
  readonly context: string | undefined;
  readonly trace: RunTrace | undefined;
}

/** Returns the command that gives the agent the session tools. The pass is passed only in the environment. */
function sessionToolsOf({ mcp, passes }: AcpHost, sessionKey: string): SessionTools {
  const [command = "", ...args] = mcp.launcher;
  const server = {
    name: "parley",
    command,
    args: [...args, "--url", mcp.gatewayUrl(), "mcp", "--session", sessionKey],
    env: [{ name: "PARLEY_TOKEN", value: passes.passFor(sessionKey) }],
  };
  return { server, listed: passes.listed(sessionKey) };
}

/** A permission is given only under the lease: another process may have the run when the owner decides. */
function permissionOf(parts: PermissionParts, { handle, agent, runtime }: AcpRun): AskPermission {
  const { runId, sessionKey, attempt } = handle.run;
  const { wait, log } = handle;
  const decide: AskPermission = async (question, signal) => {
    if (runtime.permissions !== "ask") return runtime.permissions;
    const from = { sessionKey, runId, attempt, agentId: agent.id };
    return askPermission(
      parts,
      { ...question, ...from, askMs: runtime.askSeconds * 1000 },
      { wait, signal, log },
    );
  };
  return async (question, signal) => {
    const decision = await decide(question, signal);
    return decision === "allow" && !(await wait.mayAct(signal)) ? "deny" : decision;
  };
}

export async function acpTurn(
  host: AcpHost,
  parts: PermissionParts & { settings: Settings },
  acpRun: AcpRun,
): Promise<TurnEnd> {
  const { handle, session, agent, runtime, entries, context, trace } = acpRun;
  const { run, signal, wait, duringCall } = handle;
  const { runId, sessionKey } = run;
  const end = host.passes.begin(sessionKey, { run, wait, signal, duringCall });
  try {
    return await host.agents.turn({
      runId,
      sessionKey,
      sessionId: session.sessionId,
      agentId: agent.id,
      program: {
        command: runtime.command,
        env: { ...plainEnvironment(host.environment), ...askingVariables(runtime), ...runtime.env },
        cwd: runtime.cwd ?? agent.workspace,
        makeCwd: runtime.cwd === undefined,
        mustAsk: runtime.permissions !== "allow",
        secrets: [...runtime.command.slice(1), ...Object.values(runtime.env)],
      },
      sessionTools: () => (runtime.sessionTools ? sessionToolsOf(host, sessionKey) : undefined),
      idleMs: runtime.idleMinutes * 60_000,
      introduction: introduce({
        agentId: agent.id,
        sessionKey: displayKey(sessionKey, agent.id, keyRulesOf(parts.settings)),
        hasSessionTools: runtime.sessionTools,
        ...optional({ agentName: agent.name, instructions: agent.instructions }),
      }),
      ...optional({ context }),
      entries,
      attempt: run.attempt,
      contextTokens: session.contextUsed,
      ask: permissionOf(parts, acpRun),
      mayAct: () => handle.confirm(),
      append: (entry) => handle.append(entry),
      onText: (delta) => handle.text(delta),
      onThinking: (delta) => handle.thinking(delta),
      onTool: (event) => {
        trace?.tool(event);
        handle.publish({ kind: "tool", runId, sessionKey, ...event });
      },
      signal,
      log: handle.log,
    });
  } finally {
    end();
  }
}

export interface PermissionParts {
  readonly engine: Pick<Engine, "commit">;
}

/** Resolves with the owner's decision, or with a denial if the owner does not decide in time (PD1). */
export async function askPermission(
  parts: PermissionParts,
  asked: PermissionRequest,
  { wait, signal, log }: { wait: RunWait; signal: AbortSignal; log: Log },
): Promise<PermissionDecision> {
  const { engine } = parts;
  if (signal.aborted) return "deny";
  try {
    const opened = await engine.commit(async (unit) =>
      (await wait.holds(unit)) ? openPermission(unit, asked) : undefined,
    );
    if (opened?.ok === false) log.warn({ why: opened.error }, "a permission request was denied");
    if (!opened?.ok) return "deny";
    const question = opened.value;
    const decided = await wait.waitForDecision(question, signal, true);
    // This write is not awaited, so that a stopped run ends without waiting for the store.
    const closed = engine.commit((unit) => closePermission(unit, question));
    closed.catch((error: unknown) => log.debug({ err: error }, "a permission request could not be deleted"));
    return decided?.decision ?? "deny";
  } catch (error) {
    log.error({ err: error }, "a permission request failed and counts as denied");
    return "deny";
  }
}
