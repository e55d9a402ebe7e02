// Decides whether a session may spawn a sub-agent, and determines the sub-agent's agent, model, depth and
// sandbox.
// SPN1: each reason for a refusal is checked separately, and its text names the setting that would allow the
//       spawn.

import { optional } from "../optional.ts";
import { type Failure, fail, ok, type Result } from "../shapes/errors.ts";
import { isAgentId } from "../shapes/session-key.ts";
import {
  type AgentSettings,
  agentOf,
  modelNames,
  modelsNamed,
  OFFLINE_MODEL,
  outsideKind,
  type Settings,
  THINKING_LEVELS,
  type ThinkingLevel,
  thinkingNamed,
} from "../shapes/settings/settings.ts";
import { ANNOUNCE_WAYS, type SpawnFacts } from "../shapes/spawn.ts";
import { quoted } from "../text/cut.ts";
import { nearestNames } from "../text/nearest.ts";
import { containsSubagents, isSandboxed, type SpawnChain } from "./sandbox-policy.ts";
import { maySpawnAt } from "./tool-policy.ts";

/**
 * Arguments of `sessions_spawn` that the rules depend on. Their types have been checked, but not their
 * values.
 */
export interface SpawnCall {
  readonly agentId?: string | undefined;
  readonly model?: string | undefined;
  readonly thinking?: string | undefined;
  readonly runTimeoutSeconds?: number | undefined;
  /** Older name of `runTimeoutSeconds`. */
  readonly timeoutSeconds?: number | undefined;
  readonly thread?: boolean | undefined;
  readonly mode?: string | undefined;
  readonly cleanup?: string | undefined;
  readonly sandbox?: string | undefined;
  /** Kind of agent, accepted for compatibility. `subagent` is the built-in runtime. */
  readonly runtime?: string | undefined;
  readonly announce?: string | undefined;
}

/**
 * Whether a channel can create threads for sub-agents. `off` means that it could, but the settings forbid it.
 */
export type ThreadSupport = "none" | "off" | "on";

export interface SpawnQuestion {
  readonly call: SpawnCall;
  /** The requester, its requester, and so on. */
  readonly chain: SpawnChain;
  /** Number of children of the requester with unfinished jobs. */
  readonly unfinishedChildren: number;
  /** Channel in which people read the requester's answers. Absent if there is none. */
  readonly channel?: { readonly id: string; readonly threads: ThreadSupport } | undefined;
  /** Returns whether the caller may learn that an agent may be spawned (I9). */
  readonly mayName: (agentId: string) => boolean;
}

export interface SpawnPlan {
  readonly agent: AgentSettings;
  readonly model: string;
  /** If absent, the agent's own thinking level applies. */
  readonly thinking?: ThinkingLevel;
  /** 0: no limit. */
  readonly runTimeoutSeconds: number;
  readonly thread: boolean;
  readonly mode: SpawnFacts["mode"];
  readonly cleanup: SpawnFacts["cleanup"];
  readonly announce: SpawnFacts["announce"];
  readonly archiveAfterMinutes: number;
  readonly spawnDepth: number;
  /** True if the child may spawn sub-agents itself. */
  readonly mayNest: boolean;
  /** True if the child must run in a sandbox, even if the settings change later. */
  readonly sandboxed: boolean;
}

const TIMEOUT_MAX_SECONDS = 30 * 86_400;
const LISTED_MAX = 20;
const quote = (text: string): string => quoted(text, 80);

/** Returns the configured agents that `requester` may spawn: itself, and the agents in its allow list. */
export function spawnableAgents(requester: AgentSettings, settings: Settings): AgentSettings[] {
  const { allowAgents } = requester.subagents;
  const allowAny = allowAgents.includes("*");
  return settings.agents.filter(({ id }) => allowAny || id === requester.id || allowAgents.includes(id));
}

/** Returns a sentence that names the setting which determines `spawnableAgents`. */
export function spawnRule(requester: AgentSettings, agentId: string): string {
  if (agentId === requester.id) return "every agent may spawn itself as a sub-agent";
  const listed = requester.subagents.allowAgents.includes(agentId) ? agentId : "*";
  return `agents.list[${requester.id}].subagents.allowAgents has ${quote(listed)}`;
}

function checkDepth(spawnDepth: number, settings: Settings): Failure | undefined {
  if (maySpawnAt(spawnDepth, settings)) return undefined;
  const { maxSpawnDepth } = settings.subagents;
  const raised = maxSpawnDepth < 5 ? "; it may be raised to 5" : ", the maximum";
  const error =
    `this sub-agent is ${spawnDepth} deep and can't spawn another: ` +
    `agents.defaults.subagents.maxSpawnDepth is ${maxSpawnDepth}${raised}`;
  return fail("spawn_denied", error, {
    hint: "Do the work yourself, or list the open points in your result.",
  });
}

/**
 * Refuses a child beyond `maxChildren`. Called again when the child is stored, because the tool calls of one
 * model message run in parallel.
 */
export function checkChildren(unfinished: number, settings: Settings): Failure | undefined {
  const { maxChildren } = settings.subagents;
  if (unfinished < maxChildren) return undefined;
  const setting = `agents.defaults.subagents.maxChildren is ${maxChildren}`;
  return fail("too_many_children", `${unfinished} sub-agents of this session are not finished: ${setting}`, {
    hint: "Wait for results, or cancel some with the subagents tool.",
  });
}

function chooseAgent({ call, chain, mayName }: SpawnQuestion, settings: Settings): Result<AgentSettings> {
  const requester = agentOf(settings, chain[0]);
  const id = (call.agentId ?? chain[0].agentId).trim().toLowerCase();
  if (!isAgentId(id)) return fail("invalid_argument", "agentId must be 1 to 64 of a-z, 0-9, _ and -");
  const allowed = spawnableAgents(requester, settings);
  const found = allowed.find((agent) => agent.id === id);
  if (found !== undefined) return ok(found);
  const ids = allowed.map((agent) => agent.id).filter(mayName);
  const allowedAgents = ids.slice(0, LISTED_MAX);
  const more =
    ids.length === 0 ? {} : { hint: `Allowed: ${allowedAgents.join(", ")}.`, details: { allowedAgents } };
  if (requester.subagents.allowAgents.includes("*") || id === requester.id) {
    return fail("agent_not_found", `there is no agent ${quote(id)} in agents.list`, more);
  }
  const error = `agent ${quote(id)} is not in agents.list[${requester.id}].subagents.allowAgents`;
  return fail("spawn_denied", error, more);
}

/**
 * Chooses the model of a child. The order is: the call, the sub-agent setting of the target agent, the
 * defaults, the agent.
 */
function chooseModel(agent: AgentSettings, call: SpawnCall, settings: Settings): Result<string> {
  if (agent.runtime !== undefined && call.model === undefined) return ok(agent.model);
  if (agent.runtime !== undefined) {
    const kind = outsideKind(agent.runtime);
    const error = `agent "${agent.id}" is ${kind} and chooses its own model; leave model out`;
    return fail("invalid_model", error, { details: { validModels: [agent.model] } });
  }
  const model = call.model ?? agent.subagents.model ?? settings.subagents.model ?? agent.model;
  return readModel(model, settings);
}

/** Returns the full name of a model, which may be given without its provider. */
function readModel(model: string, settings: Settings): Result<string> {
  const names = modelNames(settings.providers);
  const [meant, ...others] = modelsNamed(model, names);
  if (meant !== undefined && others.length === 0) return ok(meant);
  if (meant !== undefined) {
    const validModels = [meant, ...others];
    const error = `${quote(model)} is a model of several providers: write ${validModels.join(" or ")}`;
    return fail("invalid_model", error, { details: { validModels } });
  }
  const validModels = nearestNames(model, names, LISTED_MAX);
  const more = names.length > validModels.length ? ` and ${names.length - validModels.length} more` : "";
  const error = `there is no model ${quote(model)}; valid: ${validModels.join(", ")}${more}`;
  return fail("invalid_model", error, { hint: "Write it as <provider>/<model>.", details: { validModels } });
}

function chooseThinking(wanted: string | undefined): Result<ThinkingLevel | undefined> {
  const found = wanted === undefined ? undefined : thinkingNamed(wanted);
  if (wanted === undefined || found !== undefined) return ok(found);
  const valid = THINKING_LEVELS.join(", ");
  return fail("invalid_thinking", `there is no thinking level ${quote(wanted)}; valid: ${valid}`);
}

function chooseTimeout(call: SpawnCall, settings: Settings): Result<number> {
  const { runTimeoutSeconds, timeoutSeconds } = call;
  const both = runTimeoutSeconds !== undefined && timeoutSeconds !== undefined;
  if (both && runTimeoutSeconds !== timeoutSeconds) {
    const error =
      "timeoutSeconds is an earlier spelling of runTimeoutSeconds, and their values differ. Give only one";
    return fail("invalid_argument", error);
  }
  return checkRunTimeout(runTimeoutSeconds ?? timeoutSeconds ?? settings.subagents.runTimeoutSeconds);
}

/** Returns the time limit that a call sets for a run, in seconds, if it is valid. 0: no limit. */
export function checkRunTimeout(seconds: number): Result<number> {
  if (seconds >= 0 && seconds <= TIMEOUT_MAX_SECONDS) return ok(seconds);
  return fail("invalid_argument", `runTimeoutSeconds must be 0 (no limit) to ${TIMEOUT_MAX_SECONDS}`);
}

/**
 * Returns the value of an argument if it is one of `words`. If the argument is absent, returns the first
 * word.
 */
function chooseWord<Word extends string>(
  name: string,
  given: string | undefined,
  words: readonly [Word, ...Word[]],
): Result<Word> {
  const found = given === undefined ? words[0] : words.find((word) => word === given);
  if (found !== undefined) return ok(found);
  return fail("invalid_argument", `${name} must be one of ${words.join(", ")}, got ${quote(given ?? "")}`);
}

/** Checks that a result that is only for people has people to read it. */
function chooseAnnounce(
  { call, channel }: SpawnQuestion,
  configured: SpawnFacts["announce"],
): Result<SpawnFacts["announce"]> {
  const way = chooseWord("announce", call.announce ?? configured, ANNOUNCE_WAYS);
  if (!way.ok || way.value !== "channel" || channel !== undefined) return way;
  return fail("spawn_denied", 'announce: "channel" needs a channel, and this session has none', {
    hint: 'Omit announce, or set it to "parent".',
  });
}

/** Checks that `mode` and `thread` match each other, and that the channel supports them. */
function chooseMode(question: SpawnQuestion): Result<SpawnFacts["mode"]> {
  const { call, channel } = question;
  const thread = call.thread ?? false;
  const mode = chooseWord("mode", call.mode, thread ? ["session", "run"] : ["run", "session"]);
  if (!mode.ok) return mode;
  if (mode.value === "session" && !thread) {
    return fail("invalid_argument", 'mode "session" needs thread: true', {
      hint: 'Leave mode out, or give mode "run", for one task with one result.',
    });
  }
  if (!thread) return mode;
  const hint = "Omit thread: the result is then announced in this conversation.";
  if (channel === undefined) {
    return fail("spawn_denied", "thread: true needs a channel, and this session has none", { hint });
  }
  if (channel.threads === "on") return mode;
  if (channel.threads === "off") {
    const setting = `session.threadBindings.enabled, or channels.${channel.id}.threadBindings.enabled`;
    return fail("spawn_denied", `threads of ${channel.id} are switched off: ${setting} is false`, { hint });
  }
  return fail("spawn_denied", `thread: true needs a channel with threads, and ${channel.id} has none`, {
    hint,
  });
}

/** Returns whether the child must always be sandboxed, or the reason why it cannot be spawned (I13). */
function chooseContainment(
  call: SpawnCall,
  target: AgentSettings,
  chain: SpawnChain,
  settings: Settings,
): Result<boolean> {
  const wanted = chooseWord("sandbox", call.sandbox, ["inherit", "require"]);
  if (!wanted.ok) return wanted;
  const requesterIs = isSandboxed(chain, settings);
  const must = requesterIs || wanted.value === "require";
  const would = containsSubagents(target);
  const { id, runtime } = target;
  // The gateway starts external programs outside the sandbox.
  if (runtime !== undefined && (must || would)) {
    const kind = outsideKind(runtime);
    const error = `agent "${id}" is ${kind} and cannot run in a sandbox, but this sub-agent must`;
    return fail("spawn_denied", error, {
      hint: `agents.list[${id}].sandbox.mode must be "off", and the requester must not be sandboxed.`,
    });
  }
  if (!must || would) return ok(must);
  const why = requesterIs
    ? "this session is sandboxed, and a sandboxed session can't spawn one that is not"
    : 'the call has sandbox: "require"';
  const setting = `agents.list[${target.id}].sandbox.mode (default agents.defaults.sandbox.mode)`;
  const error = `a sub-agent of agent "${target.id}" would run unsandboxed: ${why}; ${setting} is "off"`;
  const boxed = spawnableAgents(agentOf(settings, chain[0]), settings).filter(containsSubagents);
  const names = boxed.map(({ id }) => id).slice(0, LISTED_MAX);
  const hint =
    names.length === 0 ? "No agent that you may name is sandboxed." : `Sandboxed are: ${names.join(", ")}.`;
  return fail("spawn_denied", error, { hint });
}

function checkRuntime(wanted: string | undefined, agent: AgentSettings): Failure | undefined {
  const runtime = agent.runtime?.type ?? "subagent";
  if (wanted === undefined || wanted === runtime) return undefined;
  const error = `agent "${agent.id}" has the runtime "${runtime}", not ${quote(wanted)}; leave runtime out`;
  return fail("invalid_argument", error);
}

/** Refuses attachments for an external program, because the program could not read the files. */
export function refuseAttachments({ id, runtime }: AgentSettings): Failure | undefined {
  if (runtime === undefined) return undefined;
  return fail("spawn_denied", `agent "${id}" is ${outsideKind(runtime)}: it takes no attachments`, {
    hint: "Put the material into the task, or spawn an agent of the built-in runtime.",
  });
}

function firstWithAll(results: readonly Result<unknown>[]): Failure {
  const failures = results.filter((result) => !result.ok);
  const [first, ...others] = failures;
  if (first === undefined) throw new Error("none of these results is a failure");
  if (others.length === 0) return first;
  const hints = failures.flatMap(({ hint }) => hint ?? []);
  return {
    ...first,
    error: failures.map(({ error }) => error).join("; "),
    ...(hints.length === 0 ? {} : { hint: [...new Set(hints)].join(" ") }),
    details: Object.assign({}, ...failures.map(({ details }) => details ?? {})),
  };
}

/**
 * Decides whether the requester may spawn this child, and returns its properties. `refuseAttachments` checks
 * the attachments.
 */
export function decideSpawn(question: SpawnQuestion, settings: Settings): Result<SpawnPlan> {
  const { call, chain, unfinishedChildren } = question;
  const { spawnDepth } = chain[0];
  const tooDeep = checkDepth(spawnDepth, settings);
  if (tooDeep !== undefined) return tooDeep;
  const agent = chooseAgent(question, settings);
  const mode = chooseMode(question);
  const cleanup = chooseWord("cleanup", call.cleanup, ["keep", "delete"]);
  const announced = settings.subagents.announce;
  const announce = chooseAnnounce(question, announced);
  const model = agent.ok
    ? chooseModel(agent.value, call, settings)
    : readModel(call.model ?? OFFLINE_MODEL, settings);
  const thinking = chooseThinking(call.thinking);
  const timeout = chooseTimeout(call, settings);
  const choices = [agent, mode, cleanup, announce, model, thinking, timeout];
  if (!agent.ok || !mode.ok || !cleanup.ok || !announce.ok) return firstWithAll(choices);
  if (!model.ok || !thinking.ok || !timeout.ok) return firstWithAll(choices);
  const otherRuntime = checkRuntime(call.runtime, agent.value);
  if (otherRuntime !== undefined) return otherRuntime;
  const sandboxed = chooseContainment(call, agent.value, chain, settings);
  if (!sandboxed.ok) return sandboxed;
  const tooMany = checkChildren(unfinishedChildren, settings);
  if (tooMany !== undefined) return tooMany;
  const stays = mode.value === "session";
  return ok({
    agent: agent.value,
    model: model.value,
    ...optional({ thinking: thinking.value }),
    runTimeoutSeconds: timeout.value,
    thread: call.thread ?? false,
    mode: mode.value,
    // A session with a thread is kept: it is archived when its binding ends, not after a time.
    cleanup: stays ? "keep" : cleanup.value,
    announce: announce.value,
    archiveAfterMinutes: stays ? 0 : settings.subagents.archiveAfterMinutes,
    spawnDepth: spawnDepth + 1,
    mayNest: maySpawnAt(spawnDepth + 1, settings),
    sandboxed: sandboxed.value,
  });
}
