// Reports of chains: the steps of conversations, jobs and refusals over time, on both stores, and the parts
// that a caller with fewer rights sees.

import { describe, expect } from "vitest";
import type { AgentEvent } from "../../../src/contract/events.ts";
import type { ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { addRefusal } from "../../../src/store/queries/chains/refusals.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { both, share, test } from "../../kit/deep.ts";
import { cleanup, endOf } from "../../kit/engine/engine.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { doing, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { type House, type HouseOptions, openHouse, operatorToken, quiet } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const HIDDEN = "(not visible)";

const rules = (more: Record<string, unknown> = {}) => ({
  session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200, ...more } },
});

/** Opens a gateway on this kind of store. */
async function houseOn(kind: string, options: HouseOptions = {}): Promise<House> {
  const more = { model: talkingModel(), choices: rules(), ...options };
  if (kind === "embedded") return openHouse(more);
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return openHouse({ ...more, disk: store });
}

/** Sends a message to a session, and waits until all work has ended. */
async function tell(house: House, sessionKey: string, text: string) {
  const accepted = await house.engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  const run = await endOf(house.engine, accepted.value.run.runId);
  await quiet(house);
  return run;
}

interface Told {
  readonly chain: ChainRow;
  readonly steps: readonly ChainStep[];
  readonly parties: readonly { key: string; gone?: true }[];
}

async function look(house: House, chainId: string, token?: string): Promise<Told> {
  const client = await house.client(token === undefined ? {} : { token });
  return client.request("chains.get", { chainId }) as Promise<Told>;
}

/** Formats a step as one line. */
function line({ kind, from, to, state, turn, code, silent }: ChainStep): string {
  const way = `${from ?? ""}>${to ?? ""}`
    .replaceAll(/agent:(\w+):main/g, "$1")
    .replaceAll(/agent:main:subagent:[0-9a-f-]+/g, "child");
  return [kind, way, state, turn, code, silent === true ? "silent" : undefined]
    .filter((part) => part !== undefined)
    .join(" ");
}

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  const test = both;
  test("the report of a send contains reply turns and announcement in order of time, each step with its message", async () => {
    const house = await houseOn(kind, { choices: rules({ maxPingPongTurns: 2 }) });
    await house.store.transaction((tx) =>
      updateSession(tx, RESEARCH, { lastRoute: { channel: "webchat", to: "people" } }),
    );
    const run = await tell(house, MAIN, doing(sending(RESEARCH, "what is new?")));
    const { chain, steps } = await look(house, run.chainId);
    expect(steps.map(line)).toEqual([
      "message >main ok",
      "send main>research ok 1",
      "wait main>research answered",
      "reply research>main ok 2",
      "reply main>research ok 3",
      "announce research> ok 3",
      expect.stringMatching(/^delivery research> (sent|pending)$/),
    ]);
    expect(chain).toMatchObject({
      chainId: run.chainId,
      rootSessionKey: MAIN,
      active: false,
      runs: 5,
      failed: 0,
      hopMax: 1,
      limits: { runsMax: 200, hopsMax: 16 },
      sessions: [MAIN, RESEARCH],
      flows: 1,
      refused: 0,
      talks: [{ kind: "send", from: MAIN, to: RESEARCH, steps: 4, open: 0 }],
    });
    expect(chain.tokens).toBeGreaterThan(0);
    expect(steps.reduce((sum, step) => sum + (step.tokens ?? 0), 0)).toBe(chain.tokens);
    const sent = steps[1];
    expect(sent).toMatchObject({
      text: "what is new?",
      answer: "echo what is new?",
      hop: 1,
      turnsMax: 2,
      messageIn: RESEARCH,
    });
    const rows = await house.store.db.selectFrom("messages").select(["id", "session_key"]).execute();
    const known = new Map(rows.map((row) => [row.id, row.session_key]));
    for (const step of steps) expect(known.get(step.messageId ?? "")).toBe(step.messageIn);
    expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length);
  });

  test("the report contains jobs with their results; a deleted child is marked as deleted, and never quoted", async () => {
    const house = await houseOn(kind);
    const run = await tell(house, MAIN, doing(spawning("job one"), spawning("job two")));
    const { steps } = await look(house, run.chainId);
    expect(steps.map(line).sort()).toEqual([
      ...["announce child> ok 1", "announce child> ok 1", "message >main ok"],
      ...["result child>main ok", "result child>main ok", "spawn main>child ok 1", "spawn main>child ok 1"],
    ]);
    const child = steps.find((step) => step.kind === "spawn" && step.text.includes("one"))?.to ?? "";
    const client = await house.client();
    await client.request("sessions.delete", { key: child });
    const after = await look(house, run.chainId);
    expect(after.parties).toContainEqual({ key: child, gone: true });
    const ofChild = after.steps.filter(
      (step) => step.to === child || (step.kind === "announce" && step.from === child),
    );
    expect(ofChild.map(({ text, messageId }) => [text, messageId])).toEqual([
      ["", undefined],
      ["", undefined],
    ]);
  });

  test("the report contains a refused send back and a refused hop with their codes, once, and both are published live", async () => {
    const house = await houseOn(kind, { choices: rules({ maxHops: 1 }) });
    const client = await house.client();
    const heard: unknown[] = [];
    client.on("agent", (event: AgentEvent) => {
      if (event.stream === "flow" && event.data.step === "refused") heard.push(event.data);
    });
    const back = doing(sending(MAIN, "and you?"));
    const run = await tell(house, MAIN, doing(sending(RESEARCH, `${back}`)));
    const { chain, steps } = await look(house, run.chainId);
    const refused = steps.filter((step) => step.kind === "refused");
    // While the target writes its first answer, it may not send to the sender. The gateway checks this before
    // it looks for wait cycles.
    expect(refused.map(line)).toEqual(["refused research>main refused open_flow"]);
    const over = doing(sending(WRITER, "third"));
    const second = await tell(house, MAIN, doing(sending(RESEARCH, over)));
    const hops = (await look(house, second.chainId)).steps.filter((step) => step.kind === "refused");
    expect(hops.map(line)).toEqual(["refused research>writer refused chain_limit"]);
    expect(hops[0]).toMatchObject({ error: expect.stringContaining("maxHops"), hop: 1, messageIn: RESEARCH });
    expect(chain).toMatchObject({
      refused: 1,
      talks: expect.arrayContaining([{ kind: "refused", from: RESEARCH, to: MAIN, steps: 1, open: 0 }]),
    });
    await client.request("health");
    expect(heard).toMatchObject([
      { step: "refused", from: RESEARCH, to: MAIN, reason: "open_flow" },
      { step: "refused", from: RESEARCH, to: WRITER, reason: "chain_limit" },
    ]);
  });

  test("a cycle through three sessions is refused, and the report names its path", async () => {
    const house = await houseOn(kind);
    const run = await tell(
      house,
      MAIN,
      doing(sending(RESEARCH, doing(sending(WRITER, doing(sending(MAIN, "round?")))))),
    );
    const { steps } = await look(house, run.chainId);
    expect(steps.find((step) => step.kind === "refused")).toMatchObject({
      from: WRITER,
      to: MAIN,
      code: "wait_cycle",
      cycle: [WRITER, MAIN, RESEARCH, WRITER],
    });
  });

  test("chains with steps between sessions are listed newest first, in pages, and can be filtered by session and time", async () => {
    const house = await houseOn(kind);
    const single = await tell(house, MAIN, "alone");
    const first = await tell(house, MAIN, doing(sending(RESEARCH, "1")));
    const second = await tell(house, MAIN, doing(sending(WRITER, "2")));
    const client = await house.client();
    const list = async (params: Record<string, unknown> = {}) =>
      client.request("chains.list", params) as Promise<{ chains: readonly ChainRow[]; nextCursor?: string }>;
    const ids = async (params: Record<string, unknown> = {}) =>
      (await list(params)).chains.map(({ chainId }) => chainId);
    expect(await ids()).toEqual([second.chainId, first.chainId]);
    expect(await ids({ includeSingle: true })).toEqual([second.chainId, first.chainId, single.chainId]);
    expect(await ids({ sessionKey: RESEARCH })).toEqual([first.chainId]);
    const page = await list({ limit: 1 });
    expect(page.chains.map(({ chainId }) => chainId)).toEqual([second.chainId]);
    expect(await ids({ limit: 1, cursor: page.nextCursor })).toEqual([first.chainId]);
    await house.store.transaction((tx) =>
      tx.updateTable("chains").set({ last_at: 5 }).where("chain_id", "=", first.chainId).execute(),
    );
    expect(await ids()).toEqual([second.chainId]);
    await expect(list({ cursor: "nonsense" })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    await expect(client.request("chains.get", { chainId: "none" })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  test("chains are listed by period, agent, state and words, page by page", async () => {
    const model = talkingModel((text) => {
      if (text === "fail") throw new Error("no");
      return undefined;
    });
    const house = await houseOn(kind, { model });
    const tides = await tell(house, MAIN, doing(sending(RESEARCH, "the tides of Saturn")));
    const rings = await tell(house, MAIN, doing(sending(WRITER, "the rings of Saturn")));
    const failed = await tell(house, MAIN, doing(sending(WRITER, "fail")));
    await house.store.transaction(async (tx) => {
      await updateSession(tx, RESEARCH, { label: "Observatory" });
      for (const [at, { chainId }] of [tides, rings, failed].entries())
        await tx
          .updateTable("chains")
          .set({ last_at: (at + 1) * 1_000 })
          .where("chain_id", "=", chainId)
          .execute();
    });
    const client = await house.client();
    const ids = async (params: Record<string, unknown>) => {
      const { chains } = (await client.request("chains.list", params)) as { chains: readonly ChainRow[] };
      return chains.map(({ chainId }) => chainId);
    };
    expect(await ids({})).toEqual([]);
    expect(await ids({ from: 0 })).toEqual([failed.chainId, rings.chainId, tides.chainId]);
    expect(await ids({ from: 1_000, to: 2_000 })).toEqual([rings.chainId, tides.chainId]);
    expect(await ids({ from: 2_001, to: 2_999 })).toEqual([]);
    expect(await ids({ from: 0, agentId: "research" })).toEqual([tides.chainId]);
    expect(await ids({ from: 0, state: "failed" })).toEqual([failed.chainId]);
    expect(await ids({ from: 0, state: "running" })).toEqual([]);
    expect(await ids({ from: 0, search: "saturn" })).toEqual([rings.chainId, tides.chainId]);
    expect(await ids({ from: 0, to: 1_500, search: "saturn" })).toEqual([tides.chainId]);
    expect(await ids({ from: 0, search: "rings saturn" })).toEqual([rings.chainId]);
    expect(await ids({ from: 0, search: "observatory" })).toEqual([tides.chainId]);
    expect(await ids({ from: 0, search: "nowhere" })).toEqual([]);
    const first = await client.request("chains.list", { from: 0, search: "saturn", limit: 1 });
    expect(first.chains.map(({ chainId }) => chainId)).toEqual([rings.chainId]);
    expect(await ids({ from: 0, search: "saturn", limit: 1, cursor: first.nextCursor })).toEqual([
      tides.chainId,
    ]);
  });

  test("I9: no filter of the list reveals text, agent or state of a session that the caller may not see", async () => {
    const model = talkingModel((text) => {
      if (text === "velvet") throw new Error("no");
      return undefined;
    });
    const house = await houseOn(kind, {
      model,
      gateway: { tokens: [operatorToken("main-only", "operator.read", ["agent:main:*"])] },
    });
    await tell(house, WRITER, doing(sending(RESEARCH, "velvet"), sending(MAIN, "linen")));
    await house.store.transaction((tx) => updateSession(tx, RESEARCH, { label: "Observatory" }));
    const [admin, client] = [await house.client(), await house.client({ token: "main-only" })];
    const count = async (who: typeof admin, params: Record<string, unknown>) =>
      ((await who.request("chains.list", params)) as { count: number }).count;
    expect(await count(client, { search: "linen" })).toBe(1);
    expect(await count(client, { agentId: "main" })).toBe(1);
    for (const filter of [{ search: "velvet" }, { search: "observatory" }, { state: "failed" }]) {
      expect(await count(admin, filter)).toBe(1);
      expect(await count(client, filter)).toBe(0);
    }
    await expect(count(client, { agentId: "research" })).rejects.toThrow("the token covers no session");
  });

  test("I9: a caller who may see only one party learns only that another party exists", async () => {
    const tokens = [
      operatorToken("main-only", "operator.read", ["agent:main:*"]),
      operatorToken("writer-only", "operator.read", ["agent:writer:*"]),
    ];
    const house = await houseOn(kind, { gateway: { tokens } });
    const run = await tell(
      house,
      MAIN,
      doing(sending(RESEARCH, doing(sending(WRITER, doing(sending(MAIN, "x")))))),
    );
    const told = await look(house, run.chainId, "main-only");
    // A session's own texts are visible to it, whatever keys they contain.
    const text = JSON.stringify({
      ...told,
      chain: { ...told.chain, opening: "" },
      steps: told.steps.slice(1),
    });
    for (const secret of ["research", "writer"]) expect(text).not.toContain(secret);
    expect(told.steps.map(line)).toEqual([
      "message >main ok",
      `send main>${HIDDEN} ok 1`,
      `wait main>${HIDDEN} answered`,
      `refused ${HIDDEN}>main refused wait_cycle`,
    ]);
    expect(
      told.steps
        .slice(1)
        .every((step) => step.text === "" && step.runId === undefined && step.messageId === undefined),
    ).toBe(true);
    const whole = (await look(house, run.chainId)).chain;
    expect(told.chain).toMatchObject({
      partial: true,
      sessions: [MAIN, HIDDEN],
      rootSessionKey: MAIN,
      refused: 0,
    });
    expect(told.chain.tokens).toBeLessThan(whole.tokens);
    expect(told.chain.runs).toBe(1);
    const alone = await tell(house, MAIN, doing(sending(RESEARCH, "between us")));
    const client = await house.client({ token: "writer-only" });
    await expect(client.request("chains.get", { chainId: alone.chainId })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    const { chains } = (await client.request("chains.list", {})) as { chains: readonly ChainRow[] };
    expect(chains.map(({ chainId }) => chainId)).toEqual([run.chainId]);
    expect(JSON.stringify(chains)).not.toContain("agent:main");
  });
});

test("the report contains an abort and an exhausted budget with their reasons", async () => {
  const hold = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const limit = 100_000;
  const model = talkingModel((input) => {
    // Simulates other runs that use up the budget of the chain.
    if (input === "one") return useUp();
    if (input !== "hang") return undefined;
    begun.resolve();
    return hold.promise;
  });
  const house = await houseOn("embedded", { model, choices: rules({ maxChainTokens: limit }) });
  const useUp = async (): Promise<void> => {
    await house.store.transaction((tx) => tx.updateTable("chains").set({ tokens: limit }).execute());
  };
  const accepted = await house.engine.accept({
    sessionKey: MAIN,
    input: { text: doing(sending(RESEARCH, "hang")) },
  });
  if (!accepted.ok) throw new Error(accepted.error);
  await begun.promise;
  const { chainId, runId } = accepted.value.run;
  const live = await look(house, chainId);
  expect(live.chain).toMatchObject({ active: true, limits: { tokensMax: limit } });
  expect(live.steps.map(line)).toEqual([
    "message >main waiting",
    "send main>research running 1",
    "wait main>research waiting",
  ]);
  await house.store.transaction((tx) => tx.updateTable("chains").set({ last_at: 5 }).execute());
  const client = await house.client();
  const { chains } = await client.request("chains.list", {});
  // The chain has made no progress for a long time, but is still active.
  expect(chains.map((chain) => [chain.chainId, chain.active])).toEqual([[chainId, true]]);
  await house.engine.abort({ sessionKey: MAIN, runId });
  hold.resolve();
  await quiet(house);
  const after = await look(house, chainId);
  expect(after.steps.map(line).slice(0, 3)).toEqual([
    "message >main aborted run_aborted",
    "send main>research ok 1",
    "wait main>research aborted",
  ]);
  const run = await tell(house, MAIN, doing(sending(RESEARCH, "one"), sending(RESEARCH, "two")));
  const { chain, steps } = await look(house, run.chainId);
  expect(chain.tokens).toBeGreaterThanOrEqual(limit);
  expect(steps.map(line)).toContain("send main>research error 1 chain_limit");
  // The message was accepted, and only its run failed.
  expect(chain.refused).toBe(0);
});

test("text in steps that looks like a credential is redacted, and long text is cut", async () => {
  const house = await houseOn("embedded");
  const secret = "sk-abcdefghijklmnop1234567890";
  const run = await tell(
    house,
    MAIN,
    doing(sending(RESEARCH, `${"x".repeat(390)} ${secret} ${"y".repeat(3_000)}`)),
  );
  const { steps } = await look(house, run.chainId);
  const sent = steps.find((step) => step.kind === "send");
  expect(sent?.text.length).toBeLessThan(410);
  expect(JSON.stringify(steps)).not.toContain("sk-abcdef");
});

test("if a refusal can't be recorded, it still counts; if the send is accepted later, the recorded refusal is removed", async () => {
  const house = await houseOn("embedded", { choices: rules({ maxHops: 0 }) });
  await house.store.transaction((tx) => tx.schema.alterTable("refusals").renameTo("elsewhere").execute());
  const run = await tell(house, MAIN, doing(sending(RESEARCH, "x")));
  expect(run).toMatchObject({ state: "ok", reply: "chain_limit" });
  await house.store.transaction((tx) => tx.schema.alterTable("elsewhere").renameTo("refusals").execute());
  const again = await tell(house, MAIN, doing(sending(RESEARCH, "x")));
  const [row] = await house.store.db.selectFrom("refusals").selectAll().execute();
  expect(row).toMatchObject({ run_id: again.runId, code: "chain_limit", to_key: RESEARCH });
  await house.store.transaction(async (tx) => {
    const refusal = {
      callId: row?.call_id ?? "",
      chainId: "c",
      runId: "r",
      fromKey: MAIN,
      tool: "sessions_send",
    };
    expect(await addRefusal(tx, { ...refusal, code: "queue_full", error: "", hop: 0, at: 1 })).toBe(false);
    await tx
      .updateTable("runs")
      .set({ call_id: row?.call_id ?? "" })
      .where("run_id", "=", again.runId)
      .execute();
  });
  expect((await look(house, again.chainId)).steps.map(line)).toEqual(["message >main ok"]);
});
