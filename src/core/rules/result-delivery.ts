// Decides who receives the result of a sub-agent, and builds the sentences that explain this to models. The
// tool's description, its result and the context of a turn all use this decision, so they agree with the
// behaviour.

import type { Session } from "../shapes/session.ts";
import type { SpawnFacts } from "../shapes/spawn.ts";

/**
 * `post`: the result is sent to people and appended to the requester's transcript, without running its model.
 * `wake`: the requester's model runs with the result. `inbox`: the result waits in the inbox of an outside
 * program. `parent`: it is only appended to the requester's transcript. `channel`: it is only sent to people.
 * `none`: it is only kept, for operators and for the tool `subagents`.
 */
export type ResultDelivery = SpawnFacts["announce"] | "inbox";

export interface ResultRequester {
  /** True if an outside program serves the session instead of a model of this gateway. */
  readonly external: boolean;
  readonly isSubagent: boolean;
}

/** Returns the facts about a requester that decide how a result is delivered. */
export function resultRequester({ external, spawn }: Pick<Session, "external" | "spawn">): ResultRequester {
  return { external, isSubagent: spawn !== undefined };
}

function resultDelivery(
  { external, isSubagent }: ResultRequester,
  announce: SpawnFacts["announce"],
): ResultDelivery {
  if (announce === "none") return announce;
  if (external) return "inbox";
  // A sub-agent needs the result to continue its own job.
  return isSubagent ? "wake" : announce;
}

/** Decides who receives the result of a job. If the job has its own thread, people read the result there. */
export function jobDelivery(
  requester: Pick<Session, "external" | "spawn">,
  job: Pick<SpawnFacts, "announce" | "thread"> | undefined,
): ResultDelivery {
  const { thread, announce = "post" } = job ?? {};
  const way = thread !== undefined && announce === "wake" ? "post" : announce;
  return resultDelivery(resultRequester(requester), way);
}

const WAIT = "call subagents with action wait";

export interface NoteFacts {
  readonly requester: ResultRequester;
  readonly announce: SpawnFacts["announce"];
  /** True if the sub-agent has its own thread, in which its replies are posted. */
  readonly thread: boolean;
  /** True if people read the requester's answers in a chat. */
  readonly hasPlace: boolean;
  /** True if the requester has the tool to wait for results. */
  readonly mayWait: boolean;
}

function happens({ requester, announce, thread, hasPlace }: NoteFacts): string {
  const way = resultDelivery(requester, announce);
  if (way === "none") return "Its result is not announced: only subagents returns it.";
  if (way === "inbox")
    return "When it has finished, its result comes to your inbox: read it with sessions_inbox.";
  if (way === "channel")
    return "When it has finished, its result is posted to people; it does not reach you.";
  if (thread && !requester.isSubagent) {
    return (
      "Its replies are posted in its thread. The first one is also appended to your transcript; " +
      "it starts no turn of yours."
    );
  }
  if (way === "wake") return "When it has finished, its result starts a new turn of yours. Do not poll.";
  const posted =
    hasPlace && way === "post" ? "posted to the people of this conversation and appended" : "appended";
  return `When it has finished, its result is ${posted} to your transcript; it starts no turn of yours.`;
}

/** Returns the note in the result of an accepted `sessions_spawn`. */
export function resultNote(facts: NoteFacts): string {
  return facts.mayWait ? `${happens(facts)} To get the result now, ${WAIT}.` : happens(facts);
}

const POST = "its result is posted to the people of this conversation and appended to your transcript";
const WOKEN = "When it has finished, its result starts a new turn of yours, so do not poll.";

/**
 * Returns the part of the `sessions_spawn` description that explains results: the default, and the effect of
 * `announce`.
 */
export function resultDescription(
  requester: ResultRequester,
  { announce, mayWait }: { readonly announce: SpawnFacts["announce"]; readonly mayWait: boolean },
): string {
  const way = resultDelivery(requester, announce);
  const then = mayWait ? ` To use results in this turn, ${WAIT}.` : "";
  if (way === "inbox") return `Its result comes to your inbox: read it with sessions_inbox.${then}`;
  if (requester.isSubagent) return `${WOKEN}${then}`;
  return way === "wake"
    ? `${WOKEN} With announce: "post", ${POST}, and it starts no turn of yours.${then}`
    : `When it has finished, ${POST}; it starts no turn of yours. ` +
        `With announce: "wake", it starts one instead.${then}`;
}

/** Returns the sentence from which a sub-agent learns who receives its last reply. */
export function resultReader(way: ResultDelivery): string {
  switch (way) {
    case "post":
      return "It is announced automatically: to the people of that session, and in its transcript.";
    case "wake":
      return "It is announced automatically: it starts a turn of the agent of that session.";
    case "inbox":
      return "It is announced automatically: it comes to the inbox of that client.";
    case "parent":
      return "It is announced automatically: it is appended to the transcript of that session.";
    case "channel":
      return "It is announced automatically, to the people of that session.";
    case "none":
      return "It is kept for that session, and not announced.";
  }
}
