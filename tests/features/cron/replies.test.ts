// Delivery of jobs' answers: through the outbox, once, and only if the send policy allows it.

import { expect, test } from "vitest";
import { runJob } from "../../../src/features/cron/jobs.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type FlowAppOptions, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { ADMIN, add, cronKey, jobsOf, untilTurns } from "./kit.ts";

const MAIN = "agent:main:main";
const deliver = { channel: "webchat", to: MAIN };
const schedule = { kind: "every", everyMs: 3_600_000 } as const;

async function fired(
  play: Play,
  more: Partial<FlowAppOptions> = {},
  before?: { cronPolicy?: "deny"; gone?: true },
) {
  const plays: FlowAppOptions["plays"] = {};
  const app = await openFlowApp({ plays, ...more });
  const job = await add(app, {
    schedule,
    deliver: before?.gone ? { ...deliver, to: "agent:main:chat:x" } : deliver,
  });
  plays[cronKey(job.id)] = play;
  if (before?.cronPolicy !== undefined) {
    await runJob(jobsOf(app), ADMIN, job.id, async () => {});
    await untilTurns(app, job, 1);
    await app.store.transaction((tx) => updateSession(tx, cronKey(job.id), { sendPolicy: "deny" }));
    await app.store.transaction((tx) => tx.deleteFrom("deliveries").execute());
    app.sent.length = 0;
  }
  await runJob(jobsOf(app), ADMIN, job.id, async () => {});
  await untilTurns(app, job, before?.cronPolicy === undefined ? 1 : 2);
  const rows = await app.store.db.selectFrom("deliveries").selectAll().execute();
  const outbox = rows.map(({ kind, state, code, text, session_key }) => ({
    kind,
    state,
    code,
    text,
    session_key,
  }));
  return { app, job, outbox, main: await app.texts(MAIN) };
}

test("RP1: an answer is sent to its destination through the outbox, and stored in that session's transcript", async () => {
  const { app, job, outbox, main } = await fired(() => "The report.");
  const { id } = job;
  expect(outbox).toEqual([
    { kind: "send", state: "sent", code: null, text: "The report.", session_key: cronKey(id) },
  ]);
  expect(app.sent).toMatchObject([{ text: "The report.", route: deliver }]);
  expect(main).toEqual(["assistant: The report."]);
  expect(await app.texts(cronKey(id))).toEqual(["user: tick", "assistant: The report."]);
  // I10: no route has changed.
  expect((await app.session(MAIN)).lastRoute).toBeUndefined();
});

const SILENT: readonly (readonly [string, Play])[] = [
  ["a skip token", () => " REPLY_SKIP "],
  ["a skip token in bold", () => "**REPLY_SKIP**"],
  ["a skip token with a full stop", () => "no_reply."],
  ["no text", () => ""],
  [
    "an error",
    (): string => {
      throw new Error("it broke");
    },
  ],
];

test.each(SILENT)("RP1: %s delivers nothing", async (_, play) => {
  const { outbox, main } = await fired(play);
  expect(outbox).toEqual([]);
  expect(main).toEqual([]);
});

test("a skip token on the last line is not delivered", async () => {
  const { outbox, main } = await fired(() => "Nothing new.\n\nREPLY_SKIP");
  expect(outbox.map(({ text }) => text)).toEqual(["Nothing new."]);
  expect(main).toEqual(["assistant: Nothing new."]);
});

const rule = (channel: string) => ({
  session: {
    sendPolicy: { rules: [{ match: { channel }, action: "deny" as const }], default: "allow" as const },
  },
});

test.each(["webchat", "internal"])(
  "RP2: a rule that denies the channel %s blocks the answer",
  async (channel) => {
    const { outbox, main } = await fired(() => "The report.", { choices: rule(channel) });
    expect(outbox).toMatchObject([{ state: "skipped", code: "send_denied" }]);
    expect(main).toEqual([]);
  },
);

test("RP2: if the send policy of the job's own session is `deny`, the job's reply is not delivered", async () => {
  const { app, outbox } = await fired(() => "The report.", {}, { cronPolicy: "deny" });
  expect(outbox).toMatchObject([{ state: "skipped", code: "send_denied" }]);
  expect(app.sent).toEqual([]);
});

test("I5: if the destination does not exist, the delivery fails, and operators see it", async () => {
  const { outbox } = await fired(() => "The report.", {}, { gone: true });
  expect(outbox).toMatchObject([{ state: "failed", code: "session_not_found", text: "The report." }]);
});

test("I14: text for another session is redacted, but text in the job's own session is not", async () => {
  const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
  const { app, job, main } = await fired(() => `The key is ${secret}`);
  expect(main.join()).not.toContain(secret);
  expect((await app.texts(cronKey(job.id))).join()).toContain(secret);
});

const asks: Play = async (actor) => `heard ${(await actor.send(MAIN, "how is it?", 30)).reply}`;

test("a job's session has no reply turns: the job asks, and the other session announces", async () => {
  const plays: FlowAppOptions["plays"] = {};
  const choices = { session: { agentToAgent: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 200 } } };
  const app = await openFlowApp({ plays, choices });
  await app.route(MAIN);
  const job = await add(app, { schedule });
  plays[cronKey(job.id)] = asks;
  plays[MAIN] = (actor) => (actor.step === "announce" ? "told" : "fine");
  await runJob(jobsOf(app), ADMIN, job.id, async () => {});
  await untilTurns(app, job, 1);
  const steps = (await app.runs(cronKey(job.id))).map((run) => run.flow?.step ?? "message");
  expect(steps).toEqual(["message"]);
  expect((await app.runs(MAIN)).map((run) => run.flow?.step)).toEqual(["round1", "announce"]);
});
