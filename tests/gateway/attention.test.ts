// The attention list (sessions that need a person): its groups, the rights of its readers, the decisions
// about a failed run, and its change hints, on both stores.

import { describe, expect, test } from "vitest";
import { sessionRow } from "../../bench/instant.ts";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import type { AttentionItem } from "../../src/contract/methods/attention.ts";
import { asksPerson, placeOfTurn, questionOf } from "../../src/core/rules/attention/groups.ts";
import type { TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import { getChain } from "../../src/store/queries/chains/chains.ts";
import { putPeer } from "../../src/store/queries/channels/channel-peers.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import { putRemoteTask } from "../../src/store/queries/remote-tasks.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { askIn } from "../kit/engine/asking.ts";
import { embeddedGround, postgresGround } from "../kit/engine/cluster.ts";
import { quietWorld } from "../kit/engine/engine.ts";
import { doing, sending, talkingModel } from "../kit/talking-model.ts";
import { until } from "../kit/until.ts";
import { agentSettings } from "../tools/app.ts";
import { type House, type HouseOptions, openHouse, type Play, quiet } from "./kit.ts";

const GROUNDS = [
  ["sqlite", embeddedGround],
  ["postgres", () => postgresGround()],
] as const;
const MAIN = "agent:main:main";
/** More sessions than a list can show. */
const UNUSED = 700;
const RESEARCH = "agent:research:main";
const TOKENS: TokenSettings[] = [
  { token: "scoped", role: "operator", scopes: ["operator.admin"], sessions: [RESEARCH] },
  { token: "reader", role: "operator", scopes: ["operator.read"] },
];
/** Returns a play that fails, asks a question or waits, as the message says. */
function player() {
  const held = Promise.withResolvers<void>();
  let mends = false;
  const play: Play = async ({ run }) => {
    const { text } = run.input;
    if (text === "hold") await held.promise;
    if (text.startsWith("fail") && !mends) throw new Error("401 invalid key");
    return text === "ask" ? "I looked at both.\n\nShall I **deploy** it?" : `done: ${text}`;
  };
  const mend = (): void => {
    mends = true;
  };
  return { play, release: held.resolve, mend };
}

async function say(house: House, sessionKey: string, text: string): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

/** Returns the items of the attention list by group, without empty groups. */
async function listed(client: GatewayClient): Promise<Record<string, readonly AttentionItem[]>> {
  const { groups } = await client.request("attention.list", {});
  for (const { count, items } of groups) expect(count).toBe(items.length);
  return Object.fromEntries(
    groups.filter(({ count }) => count > 0).map(({ group, items }) => [group, items]),
  );
}

const short = (groups: Record<string, readonly AttentionItem[]>) =>
  Object.fromEntries(
    Object.entries(groups).map(([group, items]) => [
      group,
      items.map(({ kind, sessionKey, actions }) => `${kind} ${sessionKey}: ${actions.join(" ")}`).sort(),
    ]),
  );

describe.each(GROUNDS)("on %s", (_, openGround) => {
  const open = async (options: HouseOptions): Promise<House> => {
    const ground = await openGround();
    const world = quietWorld();
    return openHouse({ disk: await ground.open(world), world, gateway: { tokens: TOKENS }, ...options });
  };

  test("a question stays in the list even if there are many newer sessions without a turn", async () => {
    const { play } = player();
    const house = await open({ play });
    const client = await house.client();
    await say(house, RESEARCH, "ask");
    await quiet(house);
    await house.store.transaction(async (tx) => {
      for (let n = 1; n <= UNUSED; n += 1)
        await insertSession(tx, {
          ...sessionRow(`agent:main:unused-${n}`, n),
          updatedAt: house.engine.now() + n,
        });
    });
    expect(short(await listed(client)).needs_you).toEqual([`question ${RESEARCH}: answer dismiss`]);
  });

  test("AT1: a session is in one group, determined by its last turn; a failed session leaves the list at its next turn", async () => {
    const { play, release } = player();
    const house = await open({ play });
    const client = await house.client();
    const { key: held } = await client.request("sessions.create", { label: "held" });
    await say(house, MAIN, "fail");
    await say(house, RESEARCH, "ask");
    await quiet(house);
    await say(house, held, "hold");
    expect(short(await listed(client))).toEqual({
      needs_you: [`question ${RESEARCH}: answer dismiss`, `run ${MAIN}: retry dismiss`],
      running: [`run ${held}: stop`],
    });
    const { needs_you = [], running } = await listed(client);
    expect(needs_you.map(({ summary }) => summary).sort()).toEqual(["401 invalid key", "Shall I deploy it?"]);
    expect(running).toMatchObject([{ label: "held", summary: "hold", state: "running" }]);
    await say(house, MAIN, "hello");
    release();
    await quiet(house);
    expect(short(await listed(client))).toEqual({
      needs_you: [`question ${RESEARCH}: answer dismiss`],
      done: [`run ${MAIN}: `, `run ${held}: `].sort(),
    });
  });

  test("AT4: an agent elsewhere that waits for a message needs a person, whatever its text is, until the next turn", async () => {
    const house = await open({
      play: ({ run }) => (run.input.text === "book" ? "The date, please." : "Booked."),
    });
    const client = await house.client();
    const runId = await say(house, MAIN, "book");
    await quiet(house);
    expect((await listed(client)).needs_you).toBeUndefined();
    const run = await getRun(house.store.db, runId);
    const task = { remote: "https://far.example", contextId: "c", taskId: "t", runId, isAsking: true };
    await house.store.transaction((tx) => putRemoteTask(tx, run?.sessionId ?? "", task, 1));
    expect((await listed(client)).needs_you).toMatchObject([
      { kind: "question", summary: "The date, please.", actions: ["answer", "dismiss"] },
    ]);
    await say(house, MAIN, "tomorrow");
    await quiet(house);
    expect((await listed(client)).needs_you).toBeUndefined();
  });

  test("a request that nobody answered in time needs a person after the run has ended, until the next turn", async () => {
    const house: House = await open({
      play: async (handle) => {
        if (handle.run.input.text !== "deploy") return "Fine.";
        await askIn({ engine: house.engine }, handle, { title: "deploy --now", askMs: 20 });
        if (handle.run.sessionKey === MAIN) return "I could not deploy.";
        await askIn({ engine: house.engine }, handle, { title: "deploy --later", askMs: 20 });
        return "I could not deploy either.";
      },
    });
    const client = await house.client();
    const first = await say(house, MAIN, "deploy");
    await say(house, RESEARCH, "deploy");
    await quiet(house);
    const { needs_you = [], done } = await listed(client);
    expect(short({ needs_you })).toEqual({
      needs_you: [MAIN, RESEARCH].map((key) => `unanswered ${key}: answer dismiss`),
    });
    const summary = "Nobody answered in time, so it was not done: deploy";
    expect(needs_you.map((one) => one.summary).sort()).toEqual([`${summary} --later`, `${summary} --now`]);
    expect(done).toBeUndefined();
    await client.request("runs.dismiss", { runId: first });
    await say(house, RESEARCH, "leave it");
    await quiet(house);
    expect(short(await listed(client))).toEqual({ done: [MAIN, RESEARCH].map((key) => `run ${key}: `) });
  });

  test("a request that nobody answered needs nobody once a person has answered a later one of its run", async () => {
    const house: House = await open({
      play: async (handle) => {
        await askIn({ engine: house.engine }, handle, { title: "deploy", askMs: 20 });
        return askIn({ engine: house.engine }, handle, { title: "deploy again" });
      },
    });
    const client = await house.client();
    await say(house, MAIN, "deploy");
    const [asked] = await until(async () => {
      const { permissions } = await client.request("permissions.list", {});
      return permissions[0]?.title === "deploy again" && permissions;
    });
    await client.request("permissions.answer", { id: asked?.id ?? "", decision: "allow" });
    await quiet(house);
    expect(short(await listed(client))).toEqual({ done: [`run ${MAIN}: `] });
  });

  test("a summary shows no marks of Markdown, and hides a secret that contains them", async () => {
    const secret = "the~~hidden~~key-0123456789";
    const world = quietWorld();
    const play: Play = async ({ run }) =>
      run.sessionKey === MAIN ? "Done.\n\nIs it **right**?" : `# The *key*: ${secret}`;
    const house = await open({ world, play });
    const client = await house.client();
    for (const key of [MAIN, RESEARCH]) await say(house, key, "hello");
    await quiet(house);
    // Learned late, so that the stored text contains it.
    world.redactor.learn([secret]);
    const { needs_you = [], done = [] } = await listed(client);
    expect(needs_you.map(({ summary }) => summary)).toEqual(["Is it right?"]);
    expect(done.map(({ summary }) => summary)).toEqual(["The key: [redacted]"]);
  });

  test("AT3: two tokens with different rights get different items and actions, and each decision is made only once", async () => {
    const { play, mend } = player();
    const house: House = await open({
      play: async (handle) => {
        if (handle.run.input.text !== "asks for both") return play(handle);
        const ask = (sessionKey: string) =>
          askIn({ engine: house.engine }, handle, { title: "rm -rf build", sessionKey });
        return (await Promise.all([MAIN, RESEARCH].map(ask))).join();
      },
    });
    const [admin, scoped, reader] = [
      await house.client(),
      await house.client({ token: "scoped" }),
      await house.client({ token: "reader" }),
    ];
    const [mine, other] = [await say(house, RESEARCH, "fail 1"), await say(house, MAIN, "fail 2")];
    await quiet(house);
    const { key: asker } = await admin.request("sessions.create", {});
    await say(house, asker, "asks for both");
    const { permissions } = await until(async () => {
      const open = await admin.request("permissions.list", {});
      return open.permissions.length === 2 && open;
    });
    await house.store.transaction(async (tx) => {
      const failed = { state: "failed", code: "channel_failed", error: `no ${MAIN}`, createdAt: 9 } as const;
      for (const sessionKey of [MAIN, RESEARCH]) {
        const route = { channel: "internal", to: MAIN };
        await insertDelivery(tx, { id: sessionKey, sessionKey, kind: "send", route, text: "t", ...failed });
      }
      const peer = { channel: "telegram", accountId: "default", peerId: "p", name: "Anna", toldAt: 1 };
      await putPeer(tx, { ...peer, state: "pending", code: "ABCDEFGH", askedAt: house.engine.now() });
    });
    expect(short(await listed(admin)).needs_you).toEqual(
      [
        ...[MAIN, RESEARCH].flatMap((key) => [
          `permission ${key}: approve deny`,
          `delivery ${key}: retry dismiss`,
          `run ${key}: retry dismiss`,
        ]),
        "pairing undefined: approve deny",
      ].sort(),
    );
    const pairing = (await listed(admin)).needs_you?.find(({ kind }) => kind === "pairing");
    expect(pairing).toMatchObject({
      title: "Anna",
      summary: "Wants to write to the agent main on telegram:default · id p",
    });
    const own = await listed(scoped);
    expect(short(own)).toEqual({
      needs_you: [
        `delivery ${RESEARCH}: retry dismiss`,
        `permission ${RESEARCH}: approve deny`,
        `run ${RESEARCH}: retry dismiss`,
      ],
    });
    expect(JSON.stringify(own)).not.toContain(MAIN);
    expect(short(await listed(reader))).toEqual({
      needs_you: [MAIN, RESEARCH].flatMap((key) => [`permission ${key}: `, `run ${key}: `]).sort(),
      running: [`run ${asker}: `],
    });

    const refused = { details: { code: "run_not_found" } };
    await expect(scoped.request("runs.retry", { runId: other })).rejects.toMatchObject(refused);
    await expect(scoped.request("runs.dismiss", { runId: other })).rejects.toMatchObject(refused);
    await expect(reader.request("runs.retry", { runId: mine })).rejects.toThrow(/scope/);
    await admin.request("runs.dismiss", { runId: other });
    await expect(admin.request("runs.dismiss", { runId: other })).rejects.toMatchObject(refused);
    await expect(admin.request("runs.retry", { runId: other })).rejects.toMatchObject(refused);
    expect(short(await listed(admin)).failed).toEqual([`run ${MAIN}: `]);

    for (const { id } of permissions) await admin.request("permissions.answer", { id, decision: "deny" });
    mend();
    const both = await Promise.allSettled([1, 2].map(() => scoped.request("runs.retry", { runId: mine })));
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const keyed = { runId: mine, idempotencyKey: "again" };
    await expect(scoped.request("runs.retry", keyed)).rejects.toMatchObject(refused);
    await quiet(house);
    const { done = [] } = await listed(scoped);
    expect(done).toMatchObject([{ sessionKey: RESEARCH, summary: "done: fail 1", actions: [] }]);
    const runs = await house.store.db.selectFrom("runs").select("run_id").execute();
    expect(runs).toHaveLength(4);
  });

  test("I9: a run is held and released by those who may write to its session, and the lists say so", async () => {
    const { play, release } = player();
    const house = await open({ play });
    const [admin, scoped, reader] = [
      await house.client(),
      await house.client({ token: "scoped" }),
      await house.client({ token: "reader" }),
    ];
    const mine = await say(house, RESEARCH, "hold");
    const other = await say(house, MAIN, "hold");
    await until(async () => (await listed(admin)).running?.length === 2);
    const refused = { details: { code: "run_not_found" } };
    await expect(scoped.request("runs.hold", { runId: other })).rejects.toMatchObject(refused);
    await expect(scoped.request("runs.release", { runId: other })).rejects.toMatchObject(refused);
    await expect(reader.request("runs.hold", { runId: mine })).rejects.toThrow(/scope/);
    const answer = { ok: true, runId: mine, sessionKey: RESEARCH };
    for (let times = 0; times < 2; times += 1)
      expect(await scoped.request("runs.hold", { runId: mine })).toEqual(answer);
    expect((await listed(scoped)).running).toMatchObject([{ ref: mine, hold: "pending" }]);
    expect((await scoped.request("runs.list", {})).runs).toMatchObject([{ hold: "pending" }]);
    const row = async () =>
      (await scoped.request("sessions.list", {})).sessions.find(({ key }) => key === RESEARCH);
    expect(await row()).toMatchObject({ state: "running", hold: "pending" });
    const history = await scoped.request("chat.history", { sessionKey: RESEARCH, includeRuns: true });
    expect(history.runs?.[mine]).toMatchObject({ hold: "pending" });
    expect(await scoped.request("runs.release", { runId: mine })).toEqual(answer);
    expect(await row()).not.toHaveProperty("hold");
    release();
    await quiet(house);
    await expect(admin.request("runs.hold", { runId: mine })).rejects.toMatchObject(refused);
  });

  test("a run of an agent that is a program is not held, because the gateway does not make its calls", async () => {
    const { play, release } = player();
    const runtime = { type: "acp", command: ["true"] } as never;
    const agents = [agentSettings("main"), agentSettings("coder", { runtime })];
    const house = await open({ play, choices: { agents } });
    const runId = await say(house, "agent:coder:main", "hold");
    const client = await house.client();
    await expect(client.request("runs.hold", { runId })).rejects.toThrow(/does not make the tool calls/);
    expect((await client.request("runs.list", {})).runs[0]).not.toHaveProperty("hold");
    release();
    await quiet(house);
  });

  test("ME3: the retry of an owner's message by a guest is a guest's run; an owner's retry is not", async () => {
    const { play } = player();
    const house = await open({ play });
    const [admin, scoped] = [await house.client(), await house.client({ token: "scoped" })];
    const guests: unknown[] = [];
    for (const client of [admin, scoped]) {
      const failed = await say(house, RESEARCH, "fail");
      await quiet(house);
      const { runId } = await client.request("runs.retry", { runId: failed });
      await quiet(house);
      const run = await getRun(house.store.db, runId);
      guests.push(run?.input.guest, (await getChain(house.store.db, run?.chainId ?? "")).guest);
    }
    expect(guests).toEqual([undefined, false, true, true]);
  });

  test("the list names the session for which a run waits, unless the reader may not see that session", async () => {
    const held = Promise.withResolvers<void>();
    const here = Promise.withResolvers<void>();
    const model = talkingModel((input) => {
      if (!input.includes("a long question")) return undefined;
      if (!input.includes("do:")) here.resolve();
      return input.includes("do:") ? undefined : held.promise;
    });
    const token = { token: "half", role: "operator", scopes: ["operator.write"], sessions: [MAIN] } as const;
    const house = await open({ model, gateway: { tokens: [token] } });
    const [admin, half] = [await house.client(), await house.client({ token: "half" })];
    await say(house, MAIN, doing(sending(RESEARCH, "a long question")));
    await here.promise;
    // The sender releases its slot for the other run.
    await expect
      .poll(async () => (await listed(admin)).waiting)
      .toMatchObject([{ sessionKey: MAIN, waitingFor: [RESEARCH], waitingForCount: 1 }]);
    const { running } = await listed(admin);
    expect(running).toMatchObject([{ sessionKey: RESEARCH, actions: ["stop"] }]);
    const [item] = (await listed(half)).waiting ?? [];
    expect(item).toMatchObject({ sessionKey: MAIN, actions: ["stop"] });
    expect(item?.waitingFor).toBeUndefined();
    held.resolve();
    await quiet(house);
    expect((await listed(admin)).waiting).toBeUndefined();
  });

  test("AT5: a session that is done waits as long as a job of it is unfinished, if the reader may see the job", async () => {
    const held = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    const model = talkingModel((input) => {
      if (input.includes("announce step")) return told.promise;
      return input.includes("a long job") ? held.promise : undefined;
    });
    const token = { token: "half", role: "operator", scopes: ["operator.write"], sessions: [MAIN] } as const;
    const house = await open({ model, gateway: { tokens: [token] } });
    const [admin, half] = [await house.client(), await house.client({ token: "half" })];
    const args = { task: "a long job" };
    await say(house, MAIN, "hello");
    await quiet(house);
    const spawn = { sessionKey: MAIN, name: "sessions_spawn", arguments: args };
    await admin.request("tools.invoke", spawn);
    await expect
      .poll(async () => (await listed(admin)).waiting)
      .toMatchObject([{ sessionKey: MAIN, state: "waiting", waitingForCount: 1, actions: [] }]);
    expect((await listed(admin)).done).toBeUndefined();
    expect((await listed(half)).waiting).toBeUndefined();
    expect((await listed(half)).done).toMatchObject([{ sessionKey: MAIN }]);
    held.resolve();
    await expect
      .poll(async () => (await listed(admin)).running)
      .toMatchObject([{ summary: "Announces the result." }]);
    told.resolve();
    await quiet(house);
    expect((await listed(admin)).waiting).toBeUndefined();
  });

  test("AT1, AT2: of several sessions that one budget stopped, one needs a person, and the others have failed", async () => {
    const house = await open({ play: player().play });
    const client = await house.client();
    const { key: other } = await client.request("sessions.create", { label: "other" });
    for (const key of [MAIN, other]) {
      await say(house, key, "fail");
      await quiet(house);
    }
    await house.store.transaction((tx) => tx.updateTable("runs").set({ code: "budget_used" }).execute());
    const { needs_you = [], failed } = await listed(client);
    expect(needs_you).toMatchObject([{ kind: "budget", code: "budget_used" }]);
    expect(failed).toMatchObject([{ kind: "budget", state: "error" }]);
    expect(needs_you[0]?.sessionKey).not.toBe(failed?.[0]?.sessionKey);
  });

  test("a change event is sent only to connections whose list may have changed, and several changes share one event", async () => {
    const house = await open({ play: player().play });
    const [admin, scoped] = [await house.client(), await house.client({ token: "scoped" })];
    const heard = { admin: 0, scoped: 0 };
    const both = new Promise<void>((resolve) => {
      admin.onEvent(({ event }) => {
        if (event === "attention") heard.admin += 1;
      });
      scoped.onEvent(({ event }) => {
        if (event !== "attention") return;
        heard.scoped += 1;
        resolve();
      });
    });
    const seen = new Promise<void>((resolve) => {
      admin.onEvent(({ event }) => event === "attention" && resolve());
    });
    await say(house, MAIN, "fail");
    await quiet(house);
    await seen;
    expect(heard.scoped).toBe(0);
    await say(house, RESEARCH, "fail");
    await both;
    expect(heard.admin).toBeLessThanOrEqual(3);
  });
});

test("AT1, AT2, AT5: a session's group depends on how its last turn ended, on the turn's step, and on decisions about the turn", () => {
  const turn = { state: "error", tail: "", dismissed: false } as const;
  const place = (more: object) => Object.values(placeOfTurn({ ...turn, ...more })).join(" ");
  expect([
    place({}),
    place({ state: "timeout" }),
    place({ dismissed: true }),
    place({ flowStep: "task" }),
    place({ flowStep: "task", code: "budget_used" }),
    place({ code: "chain_limit", dismissed: true }),
    place({ state: "ok", tail: "May I?" }),
    place({ state: "ok", tail: "May I?", flowStep: "round1" }),
    place({ state: "ok", tail: "The date, please.", asks: true }),
    place({ state: "ok", tail: "The date, please.", asks: true, dismissed: true }),
    place({ state: "aborted", tail: "May I?" }),
    place({ state: "ok", hasJobs: true }),
    place({ state: "ok", tail: "May I?", hasJobs: true }),
    place({ hasJobs: true }),
  ]).toEqual([
    "needs_you run",
    "needs_you run",
    "failed run",
    "failed run",
    "needs_you budget",
    "failed budget",
    "needs_you question",
    "done run",
    "needs_you question",
    "done run",
    "done run",
    "waiting run",
    "needs_you question",
    "needs_you run",
  ]);
});

test("an answer asks a question if it ends with a question mark that is not in quotation marks or code", () => {
  const lists = [
    "Which one?\n\n1. red\n2. blue\n   or green",
    "Which one?\n- red\n- blue\n",
    "1. red?\n2. blue?",
  ];
  const asked = ["Shall I?", "**Shall I?**", "> She asked\n\nShall I?", "Darf ich？\n", "Done (or not?)"];
  const quoted = ['He said "why?"', "„Warum?“", "`ok?`", "```\nwhy?\n```", "She asked:\n> Why?"];
  const headings = [
    "## Why?\n- full disk",
    "**Why?**\n\n1. full disk",
    "> Why?\n- full disk",
    "- red\n- blue",
  ];
  const said = [
    "Done.",
    "Why? Because.",
    "REPLY_SKIP",
    "",
    "see https://example.com/?a=1",
    ...quoted,
    ...headings,
  ];
  expect([...asked, ...lists].filter((text) => !asksPerson(text))).toEqual([]);
  expect(said.filter(asksPerson)).toEqual([]);
});

test("the question of an answer is its last paragraph, with the answers to choose from", () => {
  expect(questionOf("Both work.\n\nShall I\ngo on?\n")).toBe("Shall I\ngo on?");
  expect(questionOf("A.\n\nB.\n\nWhich one?\n\n- red\n\n- blue")).toBe("Which one?\n\n- red\n\n- blue");
  expect(questionOf("The date, please.")).toBe("The date, please.");
});
