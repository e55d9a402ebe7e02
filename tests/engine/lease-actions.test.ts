// Actions of a process under its lease, and after it, while the database answers late or not at all: texts,
// bot accounts, commands and repeated model calls.

import { expect, test } from "vitest";
import { openModelPort } from "../../src/agent/model/port.ts";
import { Accounts } from "../../src/channels/accounts.ts";
import { backendFailure, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import { LEASE_MS } from "../../src/store/queries/processes.ts";
import type { Store } from "../../src/store/sql.ts";
import type { ClusterProcess } from "../kit/engine/cluster.ts";
import { cleanup, makeSessions } from "../kit/engine/engine.ts";
import {
  allow,
  ended,
  executed,
  link,
  midway,
  openStage,
  runOf,
  type Stage,
} from "../kit/engine/lease-stage.ts";
import { startModelServer, TEST_MODEL } from "../kit/model-server/server.ts";
import { rateLimited } from "../kit/model-server/steps.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { agentSettings, type Choices, settingsWith } from "../tools/app.ts";

const MAIN = "agent:main:main";
const OTHER = "agent:main:chat:other";

/** Holds the answer to the commit that begins the first delivery of a process. */
function lateAttempt() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const committed = async ({ db }: Store): Promise<void> => {
    const open = db.selectFrom("deliveries").select("id").where("attempt_open", "=", 1);
    if ((await open.executeTakeFirst()) === undefined) return;
    asked.resolve();
    await answer.promise;
  };
  return { committed, asked: asked.promise, answer: answer.resolve };
}

/** Makes a conversation whose announcement goes to people. */
async function announced({ app }: ClusterProcess, asked: Promise<void>): Promise<void> {
  await makeSessions(app.store, OTHER);
  await app.route(MAIN);
  await app.send(OTHER, MAIN, "tell them", 0);
  await asked;
}

async function deliveryOf({ app }: ClusterProcess) {
  return app.store.db.selectFrom("deliveries").selectAll().executeTakeFirstOrThrow();
}

test("a process that lost its lease before its attempt was answered does not send the text", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, attempt] = [link(), lateAttempt()];
  const options = { plays: {}, committed: attempt.committed, deduplicates: false };
  const a = await cluster.join(options, world, ofA.through);
  const b = await cluster.join({ plays: {}, deduplicates: false }, world);
  await announced(a, attempt.asked);
  ofA.beats = "fail";
  await until(async () => (await deliveryOf(b)).state !== "pending");
  expect(await deliveryOf(b)).toMatchObject({ state: "failed", code: "ambiguous" });
  ofA.beats = "pass";
  // The process joins again, so its new lease is valid when the answer arrives.
  await pass(1_000);
  attempt.answer();
  await pass(LEASE_MS);
  expect(a.app.sent).toEqual([]);
});

test("a process begins to send a text only after it has joined the others", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [first, ofA] = [await cluster.join({ plays: {} }, world), link()];
  await makeSessions(first.app.store, OTHER);
  await first.app.route(MAIN);
  first.die();
  const disk = await cluster.ground.open(world);
  const route = { channel: "webchat", to: MAIN };
  await disk.transaction((tx) =>
    insertDelivery(tx, {
      ...{ id: "waits", sessionKey: MAIN, kind: "send", route, text: "hello", state: "pending" },
      createdAt: world.clock.now(),
    }),
  );
  ofA.beats = "hang";
  const joining = cluster.join({ plays: {} }, world, ofA.through);
  await pass(1_000);
  const pending = await disk.db.selectFrom("deliveries").selectAll().executeTakeFirstOrThrow();
  expect(pending).toMatchObject({ state: "pending", attempt_open: 0 });
  ofA.beats = "pass";
  const a = await joining;
  await until(async () => (await deliveryOf(a)).state === "sent");
});

test("a process that lost its lease before its hold on an account was answered does not listen to it", async () => {
  const { world, cluster, pass, until } = await openStage();
  const ofA = link();
  const a = await cluster.join({ plays: {} }, world, ofA.through);
  const b = await cluster.join({ plays: {} }, world);
  const began: string[] = [];
  const listenIn = (name: string, { app, world: own }: ClusterProcess): void => {
    const { commit, processId: owner, leaseUntil } = app.engine;
    const accounts = new Accounts({ commit, world: own, owner, leaseUntil });
    cleanup(() => accounts.stop());
    const listen = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
      began.push(name);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    accounts.start([{ name: "telegram:1", listen }]);
  };
  const answer = a.holdNextAnswer();
  listenIn("a", a);
  await pass(50);
  ofA.beats = "fail";
  listenIn("b", b);
  await until(() => began.length > 0);
  ofA.beats = "pass";
  // The process joins again, so its new lease is valid when the answer arrives.
  await pass(1_000);
  answer();
  await pass(2 * LEASE_MS);
  expect(began).toEqual(["b"]);
});

/** A command that an owner has to allow. Holds the answer to the commit with which it begins. */
function lateCommand(process: () => ClusterProcess) {
  const answer = Promise.withResolvers<void>();
  let asked: string | undefined;
  let isAnswering = false;
  let started = 0;
  const committed = async ({ db }: Store): Promise<void> => {
    const open = await db.selectFrom("permissions").select("id").executeTakeFirst();
    asked ??= open?.id;
    if (asked === undefined || open !== undefined) return;
    isAnswering = true;
    await answer.promise;
  };
  const model = scriptedModel(({ entries }) =>
    entries.some((entry) => "role" in entry && entry.role === "toolResult")
      ? "done"
      : { toolCalls: [{ name: "exec", arguments: { command: "date" } }] },
  );
  const sandbox: Sandbox = {
    kind: "bubblewrap",
    async run() {
      started += 1;
      return backendFailure("this sandbox only counts");
    },
  };
  const { exec } = settingsWith().tools;
  const choices: Choices = { tools: { exec: { ...exec, approval: "always" } } };
  return {
    options: { plays: { [MAIN]: executed(process, model, { sandbox }) }, committed, choices },
    started: () => started,
    answer: answer.resolve,
    /** Starts a run that asks, and allows its command. */
    async allowed({ until }: Stage): Promise<string> {
      const { runId } = await process().app.tell(MAIN, "work");
      await until(() => asked !== undefined);
      await allow(process(), asked ?? "");
      await until(() => isAnswering);
      return runId;
    },
  };
}

test.each(["unaware of it", "that has joined again"])(
  "a process that lost its lease before the start of a command was answered, %s, does not run it",
  async (how) => {
    const stage = await openStage();
    const { world, cluster, pass, until } = stage;
    const [ofA, work] = [link(), midway(async () => "by b")];
    const command = lateCommand(() => a);
    const a = await cluster.join(command.options, world, ofA.through);
    const b = await cluster.join({ plays: { [MAIN]: work.play } }, world);
    const runId = await command.allowed(stage);
    ofA.beats = "fail";
    await until(async () => (await runOf(b, runId))?.attempt === 2);
    await work.began;
    if (how === "that has joined again") {
      ofA.beats = "pass";
      await pass(1_000);
    }
    command.answer();
    await pass(LEASE_MS);
    ofA.beats = "pass";
    await pass(LEASE_MS);
    expect(command.started()).toBe(0);
    work.goOn();
    await until(() => ended(b, runId));
    expect(await runOf(b, runId)).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
  },
);

test("a model call is repeated only after the lease was renewed", async () => {
  const { world, cluster, pass, until } = await openStage();
  const served = await startModelServer((_, index) => (index === 0 ? rateLimited(10) : "done"));
  cleanup(() => served.close());
  const ofA = link();
  const provider = served.provider("openai-completions");
  const agents = [agentSettings("main", { model: `${provider.id}/${TEST_MODEL.id}` })];
  const choices: Choices = { agents, providers: [provider] };
  const play = executed(() => a, openModelPort(world));
  const a = await cluster.join({ plays: { [MAIN]: play }, choices }, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await until(() => a.app.events.some(({ kind }) => kind === "retry"));
  ofA.beats = "fail";
  await pass(10_000 + 2 * LEASE_MS);
  expect(served.requests).toHaveLength(1);
  ofA.beats = "pass";
  await until(() => ended(a, runId));
  expect(served.requests).toHaveLength(2);
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});
