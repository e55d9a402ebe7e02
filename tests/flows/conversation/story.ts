// A conversation of two sessions with reply turns and an announcement, and the checks at its end.

import { expect } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { isEnded, type SendAnnounce } from "../../../src/core/shapes/run.ts";
import type { FlowApp, FlowAppOptions, Play } from "../../kit/engine/flow-app.ts";
import { MAIN, RESEARCH, turns } from "./asking.ts";

type Scenario = Pick<FlowAppOptions, "plays" | "choices">;

const speaks =
  (name: string, timeoutSeconds: number, announce?: SendAnnounce): Play =>
  async (actor) => {
    if (actor.step === "message") {
      const more = optional({ announce });
      const result = await actor.send(RESEARCH, "the question", timeoutSeconds, RESEARCH, more);
      return `${name} got ${result.status}`;
    }
    return actor.step === "announce" ? `${name} announces` : `${name} says ${actor.handle.run.flow?.turn}`;
  };

export const scenario = (timeoutSeconds: number, announce?: SendAnnounce): Scenario => ({
  plays: { [MAIN]: speaks("main", timeoutSeconds, announce), [RESEARCH]: speaks("research", 0) },
  choices: turns(2),
});

/** Sends a question to main. Returns whether main accepted it, because a crash may prevent that. */
export async function begin(app: FlowApp): Promise<"accepted" | "not_told"> {
  try {
    await app.route(MAIN, RESEARCH);
    await app.tell(MAIN, "go", { runId: "from-a-person" });
    return "accepted";
  } catch {
    return "not_told";
  }
}

async function steps(app: FlowApp, key: string): Promise<string[]> {
  const runs = await app.runs(key);
  return runs.map((run) => `${run.kind} ${run.flow?.step ?? "message"} ${run.flow?.turn ?? 0} ${run.state}`);
}

export async function checkFinished(app: FlowApp, told: string): Promise<void> {
  const runs = [...(await app.runs(MAIN)), ...(await app.runs(RESEARCH))];
  for (const run of runs) expect(isEnded(run.state), `I2: run ${run.runId} is ${run.state}`).toBe(true);
  // If a crash prevented the answer, the message may be lost. An accepted message may not.
  if (told === "not_told" && runs.length === 0) return;
  expect(await steps(app, MAIN)).toEqual(["turn message 0 ok", "turn reply 2 ok"]);
  expect(await steps(app, RESEARCH)).toEqual(["turn round1 1 ok", "turn reply 3 ok", "turn announce 3 ok"]);
  // I4: each step is stored once.
  expect((await app.texts(MAIN)).slice(2)).toEqual(["user: research says 1", "assistant: main says 2"]);
  expect(await app.texts(RESEARCH)).toEqual([
    "user: the question",
    "assistant: research says 1",
    "user: main says 2",
    "assistant: research says 3",
    "user: Agent-to-agent announce step.",
    "assistant: research announces",
  ]);
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "text", "attempts"]).execute();
  expect(rows).toEqual([{ state: "sent", text: "research announces", attempts: expect.any(Number) }]);
  const usage = await app.store.db.selectFrom("ledger").select("run_id").execute();
  expect(usage).toHaveLength(runs.length);
}

/** The runs of both sessions, the texts that people got, and the last words that main got as a notice. */
const ENDS = {
  none: {
    main: ["turn message 0 ok", "turn reply 2 ok"],
    research: ["turn round1 1 ok", "turn reply 3 ok"],
    posted: [],
    noticed: [],
  },
  parent: {
    main: ["turn message 0 ok", "turn reply 2 ok", "append message 0 ok"],
    research: ["turn round1 1 ok", "turn reply 3 ok"],
    posted: [],
    noticed: ["| research says 3"],
  },
  channel: {
    main: ["turn message 0 ok"],
    research: ["turn round1 1 ok", "turn announce 1 ok"],
    posted: ["research announces"],
    noticed: [],
  },
} as const;

/** Checks the end of a conversation whose sender chose this end. */
export async function checkChosenEnd(app: FlowApp, told: string, announce: SendAnnounce): Promise<void> {
  if (told === "not_told" && (await app.runs(MAIN)).length === 0) return;
  const deliveries = await app.store.db.selectFrom("deliveries").select(["state", "text"]).execute();
  const notices = (await app.texts(MAIN)).filter((text) => text.includes("Notice from the gateway"));
  expect({
    main: await steps(app, MAIN),
    research: await steps(app, RESEARCH),
    posted: deliveries.map(({ text }) => text),
    noticed: notices.flatMap((text) => text.split("\n").filter((line) => line.startsWith("| "))),
  }).toEqual(ENDS[announce]);
  expect(deliveries.every(({ state }) => state === "sent")).toBe(true);
}
