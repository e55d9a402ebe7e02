// Decides who gets the result of a sub-agent, and writes the sentences that describe it to models.
// Tool description, note and context use the same decision, so that they describe the real behaviour.

import type { Session } from "../shapes/session.ts";
import type { SpawnFacts } from "../shapes/spawn.ts";

/**
 * `post`: sent to people and appended to the requester's transcript; its model does not run. `wake`: the
 * requester's model runs with it. `inbox`: it waits in the inbox of a client without a model.
 */
export type ResultDelivery = "post" | "wake" | "inbox";

export interface ResultRequester {
  /** True for an outside client, which runs no model of this gateway. */
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
  if (external) return "inbox";
  // The job of a sub-agent continues with the result.
  return isSubagent ? "wake" : announce;
}

/** Decides who gets the result of a job. People read it in the job's thread, if it has one. */
export function jobDelivery(
  requester: Pick<Session, "external" | "spawn">,
  job: Pick<SpawnFacts, "announce" | "thread"> | undefined,
): ResultDelivery {
  const announce = job?.thread === undefined ? job?.announce : "post";
  return resultDelivery(resultRequester(requester), announce ?? "post");
}

const WAIT = "call subagents with action wait";

export interface NoteFacts {
  readonly requester: ResultRequester;
  readonly announce: SpawnFacts["announce"];
  /** The sub-agent has its own thread: its replies are posted there. */
  readonly thread: boolean;
  /** People read the requester's answers in a chat. */
  readonly hasPlace: boolean;
  /** The requester has the tool to wait for results. */
  readonly mayWait: boolean;
}

function happens({ requester, announce, thread, hasPlace }: NoteFacts): string {
  const way = resultDelivery(requester, announce);
  if (way === "inbox")
    return "When it has finished, its result comes to your inbox: read it with sessions_inbox.";
  if (thread && !requester.isSubagent) {
    return (
      "Its replies are posted in its thread. The first one is also appended to your transcript; " +
      "you are not run with it."
    );
  }
  if (way === "wake") return "When it has finished, you are run with its result. Do not poll.";
  const posted = hasPlace ? "posted to the people of this conversation and appended" : "appended";
  return `When it has finished, its result is ${posted} to your transcript; you are not run with it.`;
}

/** Returns the note in the result of an accepted spawn. */
export function resultNote(facts: NoteFacts): string {
  return facts.mayWait ? `${happens(facts)} To get the result now, ${WAIT}.` : happens(facts);
}

const POST = "its result is posted to the people of this conversation and appended to your transcript";

/**
 * Returns the part of the `sessions_spawn` description about results: the default, and the effect of
 * `announce`.
 */
export function resultDescription(
  requester: ResultRequester,
  { announce, mayWait }: { readonly announce: SpawnFacts["announce"]; readonly mayWait: boolean },
): string {
  const way = resultDelivery(requester, announce);
  const then = mayWait ? ` To use results in this turn, ${WAIT}.` : "";
  if (way === "inbox") return `Its result comes to your inbox: read it with sessions_inbox.${then}`;
  if (requester.isSubagent) return `You are run with its result when it is there, so do not poll.${then}`;
  return way === "wake"
    ? "You are run with its result when it is there, so do not poll. " +
        `With announce: "post", ${POST}, and you are not run with it.${then}`
    : `When it has finished, ${POST}; you are not run with it. ` +
        `With announce: "wake", you are run with it instead.${then}`;
}

/** Returns the sentence that tells a sub-agent who gets its last reply. */
export function resultReader(way: ResultDelivery): string {
  switch (way) {
    case "post":
      return "It is announced automatically: to the people of that session, and in its transcript.";
    case "wake":
      return "It is announced automatically: the agent of that session is run with it.";
    case "inbox":
      return "It is announced automatically: it comes to the inbox of that client.";
  }
}
