// Describes steps of the flow view: their outcome, and their texts for display and for screen readers. Pure
// functions. Names and texts may come from anybody, so the caller must escape the results.

import type { ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { plainLine } from "../../../src/core/text/plain-line.ts";
import { duration } from "../parts/format.ts";

/** A step, or a row into which several steps are merged: those of jobs, or equal ones. */
export interface FlowStep extends ChainStep {
  /** The merged steps. Absent if the row is a single step. */
  readonly members?: readonly ChainStep[];
  /** The merged steps are equal. The other fields are those of the first one. */
  readonly equal?: true;
  /** The chain, of two compared ones, that has the step (overlay/overlay.ts). */
  readonly side?: Side;
  /** The same step of the second chain. */
  readonly other?: ChainStep;
}

type Side = "a" | "b" | "both" | "differs";

export const SIDES: Readonly<Record<Side, readonly [sign: string, name: string]>> = {
  both: ["", "same in both"],
  differs: ["≠ ", "differs"],
  a: ["A ", "only in A"],
  b: ["B ", "only in B"],
};

export interface Around {
  readonly name: (sessionKey: string) => string;
  readonly limits: ChainRow["limits"];
  /** The waits of this chain, by flow id. */
  readonly waits: ReadonlyMap<string, ChainStep>;
}

export const hasRun = ({ kind }: ChainStep): boolean => !["wait", "refused", "delivery"].includes(kind);

/** Returns the session in which the run of a step is executed. */
export function homeOf(step: ChainStep): string | undefined {
  return step.kind === "announce" || step.kind === "delivery" ? step.from : step.to;
}

export const isActive = ({ state }: ChainStep): boolean => ["queued", "running", "waiting"].includes(state);

/** Returns the status of a job that the gateway's text about its result contains. */
function jobStatus({ kind, source, text }: ChainStep): string | undefined {
  if (kind !== "result" || source === "notice") return undefined;
  return /^Status: (\w+)/.exec(text)?.[1];
}

/** Returns how the run ended that answered a wait. */
function endWord({ code }: ChainStep): "answered" | "stopped" | "failed" {
  if (code === undefined) return "answered";
  return code === "run_aborted" ? "stopped" : "failed";
}

/**
 * Returns whether a step failed, or reports a failed job. A run that was stopped did not fail, and a refusal
 * has a mark of its own.
 */
export function isFailed(step: ChainStep): boolean {
  if (["error", "timeout", "failed"].includes(step.state)) return true;
  if (step.kind === "wait") return step.state === "answered" && endWord(step) === "failed";
  return !["ok", "aborted"].includes(jobStatus(step) ?? "ok");
}

/** Returns whether the diagram notes below a step how it ended. */
export const hasNote = (step: ChainStep): boolean =>
  step.kind !== "wait" && (isFailed(step) || step.state === "aborted");

const REFUSED: Readonly<Record<string, string>> = {
  open_flow: "both are already in a conversation: reply instead",
  queue_full: "the recipient's queue is full",
  send_denied: "the send policy forbids it",
  agent_to_agent: "these agents may not talk to each other",
  not_visible: "the sender may not see such a session",
  spawn_denied: "this agent may not be spawned",
  too_many_children: "too many jobs at once",
  tool_denied: "the sender has no such tool",
};

function limitWords(error: string | undefined, limits: ChainRow["limits"]): string {
  if (error?.includes("maxHops") === true) return `hop limit ${limits.hopsMax}`;
  if (error?.includes("maxChainRuns") === true) return `limit of ${limits.runsMax} runs`;
  if (error?.includes("maxChainTokens") === true) return "the token budget is used up";
  if (error?.includes("maxChainCost") === true) return "the cost budget is used up";
  return "a limit of the chain";
}

export function refusalWords(step: ChainStep, { name, limits }: Pick<Around, "name" | "limits">): string {
  const { code = "", cycle, error } = step;
  if (code === "wait_cycle") {
    return cycle === undefined ? "circular wait" : `circular wait ${cycle.map(name).join(" → ")}`;
  }
  return code === "chain_limit" ? limitWords(error, limits) : (REFUSED[code] ?? code.replaceAll("_", " "));
}

/** Returns a text for the outcome of a wait. If the wait is not over, the text says so. */
export function waitWords(wait: ChainStep): string {
  const long = wait.endAt === undefined ? "" : duration(wait.endAt - wait.at);
  switch (wait.state) {
    case "answered":
      return `${endWord(wait)} after ${long}`;
    case "timeout":
      return `waited ${long}, no answer in time`;
    case "aborted":
      return `stopped waiting after ${long}`;
    default:
      return "waits";
  }
}

/** Formats the number of a reply: `turn 2 of 5`. The first message, turn 1, is not counted. */
export function turnWords({ turn = 1, turnsMax = 0 }: ChainStep): string {
  return `turn ${turn - 1} of ${turnsMax}`;
}

const SOURCES = {
  person: "a person",
  cron: "a schedule",
  hook: "a web hook",
  node: "a device",
  job: "",
  notice: "",
};

/** Returns where a delivery goes. The page itself is a channel, in which a session is the address. */
function routeWords({ route }: ChainStep, name: Around["name"]): string {
  if (route === undefined) return "its people";
  const { channel, to } = route;
  return `${channel} ${to.startsWith("agent:") ? name(to) : to}`;
}

/** Counts the outcomes of several steps: `28 ok, 1 error, 1 running`. */
export function outcomesOf(members: readonly ChainStep[]): string {
  const states = Map.groupBy(members, (step) => {
    if (step.state === "answered") return endWord(step);
    return step.state === "ok" ? (jobStatus(step) ?? "ok") : step.state;
  });
  return [...states].map(([state, some]) => `${some.length} ${state}`).join(", ");
}

/** Describes a row of merged steps: `× 30: 28 ok, 1 error, 1 running`. */
export const countWords = (members: readonly ChainStep[]): string =>
  `× ${members.length}: ${outcomesOf(members)}`;

/** Returns the wait for the answer to a message. */
const waitFor = ({ kind, flowId = "" }: ChainStep, { waits }: Around): ChainStep | undefined =>
  kind === "send" ? waits.get(flowId) : undefined;

type Titles = readonly [one: string, many: string];

/** Returns the title of a single step, without the outcome of its wait, and that of several merged ones. */
function makeTitles(step: FlowStep, around: Around): Titles {
  const { name } = around;
  const from = step.from === undefined ? "" : name(step.from);
  const to = step.to === undefined ? (step.toName ?? "") : name(step.to);
  const count = step.members?.length;
  const source = SOURCES[step.source ?? "person"];
  const route = routeWords(step, name);
  const about = from === "" ? "" : ` about ${from}`;
  const verb = waitFor(step, around) === undefined ? "told" : "asked";
  const result: Titles = [`${from} brought ${to} its result`, `${from} brought ${to} ${count} results`];
  const notice: Titles = [`notice to ${to}${about}`, `${count} notices to ${to}${about}`];
  const agent = `${from} was refused a sub-agent${to === "" ? "" : ` of ${to}`}`;
  const agents: Titles = [agent, `${from} was refused ${count} sub-agents`];
  const message: Titles = [`${from} was refused a message to ${to}`, `${from} was refused ${count} messages`];
  const titles: Readonly<Record<ChainStep["kind"], Titles>> = {
    message: [`${source} wrote to ${to}`, `${source} wrote ${count} messages to ${to}`],
    send: [`${from} ${verb} ${to}`, `${from} sent ${count} messages to ${to}`],
    reply: [`${from} replied to ${to}, ${turnWords(step)}`, `${from} sent ${count} replies to ${to}`],
    announce: [`${from} announces the result`, `${from} announced ${count} results`],
    spawn: [`${from} gave ${to} a job`, `${from} gave ${count} jobs`],
    result: step.source === "notice" ? notice : result,
    wait: [`${from} waits for ${to}`, `${from} waited ${count} times for ${to}`],
    refused: step.tool === "sessions_spawn" ? agents : message,
    delivery: [`delivery from ${from} to ${route}`, `${count} deliveries from ${from} to ${route}`],
  };
  return titles[step.kind];
}

/** Returns the title of a single step, without the outcome of its wait. */
export const lead = (step: ChainStep, around: Around): string => makeTitles(step, around)[0];

/** Returns the title of a row: what was done, without the text of the message. */
export function title(step: FlowStep, around: Around): string {
  const { kind, members, equal } = step;
  const [one, many] = makeTitles(step, around);
  if (members !== undefined && !equal) return `${many}: ${outcomesOf(members)}`;
  const wait = kind === "wait" ? step : waitFor(step, around);
  const answer = wait === undefined ? "" : `${kind === "wait" ? ":" : ","} ${waitWords(wait)}`;
  return `${one}${answer}${members === undefined ? "" : ` × ${members.length}`}`;
}

/** Returns a text about the outcome of a step. It is empty if the step succeeded. */
export function outcomeWords(step: FlowStep, around: Pick<Around, "name" | "limits">): string {
  if (step.members !== undefined && !step.equal) return "";
  if (step.kind === "refused") return `refused: ${refusalWords(step, around)}`;
  if (step.silent === true) return "silent";
  if (step.code === "chain_limit") return limitWords(step.error, around.limits);
  if (step.kind === "wait" && step.state === "answered")
    return step.code === undefined ? "" : `${endWord(step)} (${step.code.replaceAll("_", " ")})`;
  if (["ok", "sent"].includes(step.state)) return "";
  return step.code === undefined ? step.state : `${step.state} (${step.code.replaceAll("_", " ")})`;
}

/** Describes a step in one sentence, for screen readers. Of a step that differs, it tells both texts. */
export function sentence({ side, other, ...step }: FlowStep, around: Around): string {
  if (side === "differs" && other !== undefined)
    return `differs. A: ${sentence(step, around)}. B: ${sentence(other, around)}`;
  if (side !== undefined) return `${SIDES[side][1]}: ${sentence(step, around)}`;
  const outcome = outcomeWords(step, around);
  const said = step.text === "" ? "" : `: ${plainLine(step.text)}`;
  const { outside = [] } = step.labels ?? {};
  const sources = outside.length === 0 ? "" : `; outside: ${outside.map(({ source }) => source).join(", ")}`;
  return `${title(step, around)}${outcome === "" ? "" : `; ${outcome}`}${sources}${said}`;
}

/** Returns status and result of a job from the gateway's text about the job. */
function resultWords(said: string): string {
  const [, status, result] = /^Status: (\w+) Result: (.*?)(?: Notes: .*)?$/.exec(said) ?? [];
  return status === undefined ? said : `${status}: ${result}`;
}

export function reasonOf(step: ChainStep): string {
  if (step.kind === "result") return resultWords(plainLine(step.text));
  return step.error ?? (step.code ?? step.state).replaceAll("_", " ");
}

/** Returns the text that the diagram shows beside a step. */
export function label({ members, equal, side, ...step }: FlowStep, around: Around): string {
  const said = plainLine(step.text);
  if (side !== undefined) return SIDES[side][0] + label(step, around);
  if (members !== undefined)
    return equal ? `× ${members.length} ${label(step, around)}` : countWords(members);
  switch (step.kind) {
    case "reply":
      return `${(step.turn ?? 1) - 1}/${step.turnsMax ?? 0} ${said}`;
    case "announce":
      return step.silent === true ? "announces nothing" : `announces: ${said}`;
    case "wait":
      return said === "" || step.state !== "answered" ? waitWords(step) : `${waitWords(step)}: ${said}`;
    case "refused":
      return outcomeWords(step, around);
    case "delivery":
      return `to ${routeWords(step, around.name)} · ${step.state}`;
    case "result":
      return step.source === "notice" ? `notice: ${said}` : resultWords(said);
    default:
      return said === "" ? step.kind : said;
  }
}

/** Returns the id of the slowest, without its time in the queue, if at least two have ended. */
export function slowestOf(
  all: readonly Pick<ChainStep, "id" | "at" | "startedAt" | "endAt">[],
): string | undefined {
  const times = all.flatMap(({ id, at, startedAt = at, endAt }) =>
    endAt === undefined ? [] : [{ id, ms: endAt - startedAt }],
  );
  const first = times.reduce((most, one) => (one.ms > most.ms ? one : most), { id: "", ms: 0 });
  return times.length < 2 || first.ms === 0 ? undefined : first.id;
}
