// Explains whether A may do something to B: the rules that apply, and the one that decides. The rules are
// evaluated by the same functions and in the same order as for a real access; the first refusal decides. The
// answer describes the current state; a temporary reason is marked.

import { optional } from "../core/optional.ts";
import { isPeerAgentId } from "../core/peer.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import { sendVerdict } from "../core/rules/send-policy.ts";
import { decideSpawn, spawnRule } from "../core/rules/spawn-policy.ts";
import { decideTool, filtersFor } from "../core/rules/tool-policy.ts";
import { refuseToPartner } from "../core/rules/turn-rules.ts";
import type { Check, Explained, Explanation } from "../core/shapes/explanation.ts";
import type { Session } from "../core/shapes/session.ts";
import { agentIdInKey } from "../core/shapes/session-key.ts";
import { agentOf, findAgent } from "../core/shapes/settings/settings.ts";
import type { Redactor } from "../core/text/redact/redact.ts";
import { refuseCycle } from "../engine/lanes/waits.ts";
import { getFlow, openSpawnsOf } from "../store/queries/chains/flows.ts";
import { activeRuns } from "../store/queries/runs/runs.ts";
import { type AccessContext, openGate, sessionViewer, verdictOfKey } from "./access.ts";
import { spawnChainOf } from "./spawn-chain.ts";

const TOOL_OF: Readonly<Record<Explained, string>> = {
  list: "sessions_list",
  read: "sessions_history",
  search: "sessions_search",
  send: "sessions_send",
  spawn: "sessions_spawn",
  status: "session_status",
};

export interface ExplainQuestion {
  readonly viewer: Session;
  /** `session` is absent if no session has this key. */
  readonly target: { readonly key: string; readonly session?: Session | undefined };
  readonly accesses: readonly Explained[];
  readonly now: number;
  readonly redactor: Redactor;
  /**
   * Returns the key to show for a session in a wait cycle, or a placeholder if the reader must not see it.
   */
  showKey(key: string): string;
}

interface ExplainContext extends ExplainQuestion {
  readonly ctx: AccessContext;
  readonly chain: SpawnChain;
}

async function sight({ ctx, chain, target }: ExplainContext, access: Explained): Promise<Check> {
  const viewer = sessionViewer(chain, ctx.settings);
  const { key, session } = target;
  const agentId = session === undefined ? agentIdInKey(key) : undefined;
  // No setting would help. Only operators get this answer: to the viewer, a missing agent is a hidden one.
  if (agentId !== undefined && !isPeerAgentId(agentId) && findAgent(ctx.settings, agentId) === undefined) {
    const rule = `there is no agent ${JSON.stringify(agentId)} in agents.list`;
    return { of: "sight", allowed: false, rule, code: "agent_not_found" };
  }
  const verdict =
    session === undefined
      ? verdictOfKey(ctx, viewer, access, key)
      : await openGate(ctx, viewer).decide(access, session);
  if (verdict.allowed) return { of: "sight", allowed: true, rule: verdict.rule };
  const { code, error, settings } = verdict;
  return { of: "sight", allowed: false, rule: error, code, settings };
}

function tool({ ctx, chain }: ExplainContext, access: Explained): Check {
  const name = TOOL_OF[access];
  const verdict = decideTool(name, filtersFor(chain, ctx.settings));
  if (verdict.allowed) return { of: "tool", allowed: true, rule: `tool "${name}": ${verdict.reason}` };
  return { of: "tool", allowed: false, rule: verdict.error, code: "tool_denied" };
}

/** Explains spawning a sub-agent of the target's agent. The target itself is not affected. */
async function spawn({ ctx, chain, viewer, target }: ExplainContext): Promise<Check> {
  const agentId = target.session?.agentId ?? agentIdInKey(target.key);
  if (agentId === undefined) {
    const rule = "the key does not name an agent, so there is no agent to spawn";
    return { of: "spawn", allowed: false, rule, code: "agent_not_found" };
  }
  const open = await openSpawnsOf(ctx.db, { sessionKey: viewer.key });
  // Only the refusal's own text is shown, without its list of agents.
  const question = { call: { agentId }, chain, unfinishedChildren: open.length, mayName: () => false };
  const decided = decideSpawn(question, ctx.settings);
  if (!decided.ok) return { of: "spawn", allowed: false, rule: decided.error, code: decided.code };
  const rule = spawnRule(agentOf(ctx.settings, viewer), agentId);
  return { of: "spawn", allowed: true, rule: `a sub-agent of agent "${agentId}": ${rule}` };
}

/** Returns the checks of a send that follow the visibility check. */
async function sending({ ctx, viewer, target, now, showKey }: ExplainContext): Promise<Check[]> {
  const { session } = target;
  if (session === undefined) return [];
  const checks: Check[] = [];
  const [run] = (await activeRuns(ctx.db, viewer.key)).filter(({ state }) => state !== "queued");
  const flow = run?.flow && (await getFlow(ctx.db, run.flow.flowId));
  const reader = flow?.chosenEnd === "idle" ? "nobody" : "sender";
  const inside = refuseToPartner(flow, { from: viewer.key, to: session.key, reader });
  if (!inside.ok) {
    const rule =
      "the running turn belongs to a conversation with this session: its reply is sent there anyway";
    checks.push({ of: "open_flow", allowed: false, rule, code: inside.code, now: true });
  }
  const policy = sendVerdict(ctx.settings, session);
  checks.push(
    policy.allowed
      ? { of: "send_policy", allowed: true, rule: "session.sendPolicy does not block the send" }
      : { of: "send_policy", allowed: false, rule: policy.error, code: "send_denied" },
  );
  const free = await refuseCycle({ tx: ctx.db, now }, viewer.key, { kind: "run", sessionKey: session.key });
  if (!free.ok) {
    const { cycle } = free.details as { readonly cycle: readonly string[] };
    const path = cycle.map(showKey).join(" -> ");
    const rule = `waiting for the reply would close a cycle: ${path}; use timeoutSeconds: 0`;
    checks.push({ of: "wait_cycle", allowed: false, rule, code: free.code, now: true });
  }
  return checks;
}

async function explainOne(context: ExplainContext, access: Explained): Promise<Explanation> {
  const right = access === "spawn" ? await spawn(context) : await sight(context, access);
  const more = access === "send" ? await sending(context) : [];
  const maskRule = (check: Check): Check => ({ ...check, rule: context.redactor.mask(check.rule) });
  const checks = [tool(context, access), right, ...more].map(maskRule);
  const refusing = checks.find(({ allowed }) => !allowed);
  const { rule, code, settings = [] } = refusing ?? maskRule(right);
  return { access, allowed: refusing === undefined, rule, settings, checks, ...optional({ code }) };
}

/** Explains, for each access, whether the viewer may use it on the target, and by which rule. */
export async function explainAccess(ctx: AccessContext, question: ExplainQuestion): Promise<Explanation[]> {
  const chain = await spawnChainOf(ctx.db, question.viewer);
  const context = { ...question, ctx, chain };
  const answers: Explanation[] = [];
  for (const access of question.accesses) answers.push(await explainOne(context, access));
  return answers;
}
