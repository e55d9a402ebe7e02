// The steps of the demo, with a check for each.
// A check reads tool results and transcripts, never an agent's description of them.

import type { AgentEvent, ChatEvent } from "../../contract/events.ts";
import type { EventFrame } from "../../contract/frames.ts";
import { type Message, textOf } from "../../core/shapes/message.ts";
import { count } from "../layout.ts";
import { DemoFailure, keyOf, type Stage } from "./stage.ts";

export interface Step {
  readonly title: string;
  /** The gateway for this step: `default` has default settings; in `open`, agents may reach each other. */
  readonly where: "open" | "default";
  /** Plays the step. Returns a sentence about the result. Throws DemoFailure if the check fails. */
  play(stage: Stage, patienceMs: number): Promise<string>;
}

function expect(good: boolean, what: string, got: unknown): void {
  if (!good) throw new DemoFailure(`expected ${what}, got ${JSON.stringify(got)?.slice(0, 300)}`);
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value : [];
}

/** Returns a predicate for the event that ends the conversation between two agents. */
function overBetween(one: string, other: string) {
  const keys = [keyOf(one), keyOf(other)];
  return ({ event, payload }: EventFrame): boolean => {
    const agent = payload as AgentEvent;
    if (event !== "agent" || agent.stream !== "flow" || agent.data.step !== "ended") return false;
    return keys.includes(agent.data.from) && keys.includes(agent.data.to);
  };
}

const listing: Step = {
  title: "List: main lists the sessions",
  where: "open",
  async play(stage, patienceMs) {
    await stage.ask("main", "list sessions", patienceMs);
    const { sessions } = await stage.result("main", "sessions_list");
    const keys = list(sessions).map((row) => row.key);
    const wanted = ["main", keyOf("research"), keyOf("ops")];
    expect(
      wanted.every((key) => keys.includes(key)),
      `rows for ${wanted.join(", ")}`,
      keys,
    );
    return `main sees ${keys.length} sessions; its own is called "main", the others by their keys`;
  },
};

const SECRET_WORD = "The release is on Thursday.";

const reading: Step = {
  title: "Read: main reads another session",
  where: "open",
  async play(stage, patienceMs) {
    // The user must write to `research` first, because `research` announces results to the chat in which the
    // user wrote.
    await stage.ask("research", SECRET_WORD, patienceMs);
    await stage.ask("main", "read research", patienceMs);
    const { messages } = await stage.result("main", "sessions_history");
    const found = (list(messages) as unknown as Message[]).some((message) =>
      textOf(message).includes(SECRET_WORD),
    );
    expect(found, `a transcript with "${SECRET_WORD}"`, messages);
    return "main has read the transcript of research, as the settings allow it";
  },
};

const conversing: Step = {
  title: "Send: question, answer, replies, announcement",
  where: "open",
  async play(stage, patienceMs) {
    await stage.ask("main", "ask research: what should we check before a release?", patienceMs);
    const result = await stage.result("main", "sessions_send");
    expect(
      result.status === "ok" && result.reply !== "",
      'sessions_send with status "ok" and a reply',
      result,
    );
    const over = await stage.until("the conversation is over", patienceMs, overBetween("main", "research"));
    const { reason } = (over.payload as { data: { reason?: string } }).data;
    const replies = stage.conversation("main", "research").filter(({ step }) => step === "reply");
    expect(replies.length >= 1, "at least one reply turn", replies);
    expect(reason === "announced", 'an end with the reason "announced"', reason);
    await stage.until("the announcement is delivered", patienceMs, ({ event, payload }) => {
      const chat = payload as ChatEvent;
      return event === "chat" && chat.sessionKey === keyOf("research") && chat.stopReason === "delivered";
    });
    const further = count(replies.length - 1, "further turn");
    return `main got the answer, ${further} followed, and research announced the result to its own people`;
  },
};

const cycle: Step = {
  title: "Cycle: all three agents would wait for each other",
  where: "open",
  async play(stage, patienceMs) {
    await stage.ask("main", "ask research: ask ops: ask main: may we ship?", patienceMs);
    const refused = await stage.result("ops", "sessions_send");
    expect(refused.code === "wait_cycle", 'ops refused with the code "wait_cycle"', refused);
    const result = await stage.result("main", "sessions_send");
    expect(result.status === "ok", 'main answered with status "ok"', result);
    await stage.until("research and ops are done", patienceMs, overBetween("research", "ops"));
    return "ops was refused at once because main already waits for it; every question was answered";
  },
};

const DONE = "the backup is done";

const waiting: Step = {
  title: "Timeout: waiting stops, the work continues",
  where: "open",
  async play(stage, patienceMs) {
    await stage.ask("main", `ask ops within 1 seconds: wait 2 seconds, then say ${DONE}`, patienceMs);
    const result = await stage.result("main", "sessions_send");
    expect(result.status === "timeout", 'sessions_send with status "timeout"', result);
    await stage.until("main and ops are done", patienceMs, overBetween("main", "ops"));
    const arrived = (await stage.transcript("main")).some(
      (message) =>
        message.role === "user" && message.provenance !== undefined && textOf(message).includes("backup"),
    );
    expect(arrived, "the late answer in main's transcript", "none");
    return "the run continued after main stopped waiting, and its answer still reached main";
  },
};

const refusal: Step = {
  title: "Refusal: the same read under the default settings",
  where: "default",
  async play(stage, patienceMs) {
    await stage.ask("main", "read research", patienceMs);
    const refused = await stage.result("main", "sessions_history");
    expect(
      refused.status === "forbidden" && refused.code === "not_visible",
      'the code "not_visible"',
      refused,
    );
    const said = JSON.stringify(refused);
    const settings = ["tools.sessions.visibility", "tools.agentToAgent.enabled"];
    expect(
      settings.every((name) => said.includes(name)),
      `the names ${settings.join(" and ")}`,
      refused,
    );
    return "by default an agent sees only its own sessions; the refusal names settings that allow more";
  },
};

const JOBS = 3;

function isEnd(event: AgentEvent): boolean {
  return event.stream === "lifecycle" && event.data.phase === "end";
}

const spawning: Step = {
  title: "Sub-agents: three jobs in parallel, three results",
  where: "default",
  async play(stage, patienceMs) {
    const begunAt = stage.now();
    await stage.ask("main", `spawn ${JOBS} jobs: wait 1 second, then say part {n} is done`, patienceMs);
    const [posted, written] = [new Set<string>(), new Set<string>()];
    await stage.until(`${JOBS} results are posted, and in main's transcript`, patienceMs, (frame) => {
      const { event, payload } = frame;
      const { runId, sessionKey, stopReason } = payload as ChatEvent;
      if (sessionKey !== keyOf("main")) return false;
      if (event === "chat" && stopReason === "delivered") posted.add(runId);
      if (event === "agent" && isEnd(payload as AgentEvent) && !stage.wasAsked(runId)) written.add(runId);
      return posted.size >= JOBS && written.size >= JOBS;
    });
    const children = (await stage.transcript("main")).flatMap((message) => {
      const from = message.role === "user" ? message.provenance : undefined;
      const isResult = from?.kind === "inter_session" && from.sourceTool === "sessions_spawn";
      return isResult && textOf(message).startsWith("Status: ok\n") ? [from.sourceSessionKey] : [];
    });
    expect(children.length === JOBS && new Set(children).size === JOBS, "each result once", children);
    const seconds = Math.round((stage.now() - begunAt) / 100) / 10;
    const [child = ""] = children;
    const refused = await stage.invokeAs(child, "sessions_spawn", { task: "do it for me" });
    const said = JSON.stringify(refused);
    const setting = "agents.defaults.subagents.maxSpawnDepth";
    expect(
      refused.status === "forbidden" && said.includes(setting),
      `a refusal that names ${setting}`,
      refused,
    );
    const each = "each result reached main and its people once";
    return `${JOBS} jobs of a second each took ${seconds} s together; ${each}`;
  },
};

export const STEPS: readonly Step[] = [listing, reading, conversing, cycle, waiting, refusal, spawning];
