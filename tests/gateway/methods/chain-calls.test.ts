// Model calls and tool calls of a chain's runs, with their times, cost and failures, on both stores.

import { describe, expect } from "vitest";
import type { ChainCall, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { both, share, test } from "../../kit/deep.ts";
import { cleanup, endOf } from "../../kit/engine/engine.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { type House, type HouseOptions, openHouse, quiet } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

const tokens = [
  {
    ...{ token: "main-only", role: "operator" as const },
    ...{ scopes: ["operator.read" as const], sessions: ["agent:main:*"] },
  },
];

async function houseOn(kind: string, options: HouseOptions = {}): Promise<House> {
  const choices = { session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200 } } };
  const more = { model: talkingModel(), choices, ...options };
  if (kind === "embedded") return openHouse(more);
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return openHouse({ ...more, disk: store });
}

async function tell(house: House, text: string) {
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  const run = await endOf(house.engine, accepted.value.run.runId);
  await quiet(house);
  return run;
}

interface Told {
  readonly steps: readonly ChainStep[];
  readonly calls?: readonly ChainCall[];
  readonly truncated: boolean;
}

async function look(house: House, chainId: string, token?: string): Promise<Told> {
  const client = await house.client(token === undefined ? {} : { token });
  return client.request("chains.get", { chainId, includeCalls: true });
}

const short = ({ kind, name, endAt, failed }: ChainCall): string =>
  [kind, name, endAt === undefined ? "open" : "", failed === true ? "failed" : ""].filter(Boolean).join(" ");

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  both(
    "the calls of a run follow each other in time, and the tokens of its model calls add up to those of the run",
    async () => {
      const house = await houseOn(kind);
      const nobody = { name: "sessions_send", arguments: { sessionKey: "agent:none:main", message: "x" } };
      const run = await tell(house, doing(sending(RESEARCH, "what is new?"), nobody));
      const { steps, calls = [], truncated } = await look(house, run.chainId);
      expect(truncated).toBe(false);
      const mine = calls.filter(({ runId }) => runId === run.runId);
      expect(mine.map(short)).toEqual([
        "model rehearsal",
        "tool sessions_send",
        "tool sessions_send failed",
        "model rehearsal",
      ]);
      const [asked, sent, , answered] = mine;
      expect(asked?.at).toBe(run.startedAt);
      expect(sent?.at).toBe(asked?.endAt);
      expect(answered?.at).toBe(Math.max(...mine.slice(1, 3).map(({ endAt = 0 }) => endAt)));
      const tokens = mine.reduce((sum, call) => sum + (call.tokens ?? 0), 0);
      expect(tokens).toBe(steps.find(({ runId }) => runId === run.runId)?.tokens);
      expect(calls.filter(({ runId }) => runId !== run.runId).map(short)).toContain("model rehearsal");
      const client = await house.client();
      expect(await client.request("chains.get", { chainId: run.chainId })).not.toHaveProperty("calls");
    },
  );

  both("I9: the calls of a run are left out if its step is shown without figures", async () => {
    const house = await houseOn(kind, { gateway: { tokens } });
    const run = await tell(house, doing(sending(RESEARCH, "the plan")));
    const { calls = [] } = await look(house, run.chainId, "main-only");
    expect(calls.length).toBeGreaterThan(0);
    expect(new Set(calls.map(({ runId }) => runId))).toEqual(new Set([run.runId]));
  });
});

test("calls in progress have no end; if their run is stopped, they end as failed", async () => {
  const hold = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const model = talkingModel((input) => {
    if (input !== "hang") return undefined;
    begun.resolve();
    return hold.promise;
  });
  const house = await houseOn("embedded", { model, gateway: { tokens } });
  const accepted = await house.engine.accept({
    sessionKey: MAIN,
    input: { text: doing(sending(RESEARCH, "hang")) },
  });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId, chainId } = accepted.value.run;
  await begun.promise;
  expect((await look(house, chainId)).calls?.map(short)).toEqual([
    "model rehearsal",
    "tool sessions_send open",
    expect.stringMatching(/^model .*open$/),
  ]);
  // I9: a token that covers only main sees no call of the other run.
  const seen = (await look(house, chainId, "main-only")).calls ?? [];
  expect(seen.map((call) => call.runId)).toEqual([runId, runId]);
  await house.engine.abort({ sessionKey: MAIN, runId });
  await endOf(house.engine, runId);
  hold.resolve();
  await quiet(house);
  const { calls = [], steps } = await look(house, chainId);
  expect(calls.map(short)).toContain("tool sessions_send failed");
  const stopped = steps.find((step) => step.runId === runId);
  expect(calls.find(({ name }) => name === "sessions_send")?.endAt).toBe(stopped?.endAt);
});

test("if the store has no result of a call, the call ends as failed at the end of its run", async () => {
  const house = await houseOn("embedded");
  const run = await tell(house, doing(sending(RESEARCH, "what is new?")));
  await house.store.transaction((tx) =>
    tx
      .deleteFrom("messages")
      .where("run_id", "=", run.runId)
      .where("role", "=", "toolResult")
      .executeTakeFirstOrThrow(),
  );
  const { calls = [] } = await look(house, run.chainId);
  const sent = calls.find(({ name }) => name === "sessions_send");
  expect(sent).toMatchObject({ failed: true, endAt: run.endedAt });
});
