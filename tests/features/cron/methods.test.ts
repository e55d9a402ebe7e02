// The methods of scheduled jobs: rights, visibility, idempotency keys, refusals, and hostile names.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { optional } from "../../../src/core/optional.ts";
import { JOBS_MAX } from "../../../src/features/cron/job.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { fakeWorld } from "../../kit/world.ts";

const EVERY = { kind: "every", everyMs: 3_600_000 } as const;
const READER = "a-token-that-only-reads";
const NARROW = "a-token-for-the-main-session";
const WRITER = "a-token-that-may-write";

const tokens = [
  { token: READER, role: "operator", scopes: ["operator.read"] },
  { token: WRITER, role: "operator", scopes: ["operator.write"] },
  { token: NARROW, role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
] as const;

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: { code: string; reason?: string }) => error.reason ?? error.code,
  );
}

const add = (client: GatewayClient, more: object = {}) =>
  client.request("cron.add", { schedule: EVERY, message: "what is new?", ...more });

test("a job can be created, listed with its next and last run, changed, run and removed", async () => {
  const { client: open, engine } = await openHouse();
  const client = await open();
  const { job } = await add(client, { name: "Report", deliver: { to: "main" }, timeoutSeconds: 60 });
  expect(job).toMatchObject({
    key: `cron:${job.id}`,
    name: "Report",
    enabled: true,
    words: "every hour",
    agentId: "main",
    missed: "once",
    deliver: { channel: "webchat", to: "agent:main:main" },
    timeoutSeconds: 60,
  });
  const { schedule, state } = job;
  expect(schedule.kind === "every" && schedule.anchorMs + 3_600_000).toBe(state.nextRunAtMs);
  const fired = await client.request("cron.run", { id: job.id });
  expect(fired.sessionKey).toBe(job.key);
  expect((await client.request("agent.wait", { runId: fired.runId })).status).toBe("ok");
  const list = await client.request("cron.list", {});
  expect(list).toMatchObject({ enabled: true, count: 1, timeZone: "UTC" });
  expect(list.jobs[0]?.state.last).toMatchObject({ cause: "manual", status: "ok", runId: fired.runId });
  const { entries } = await client.request("cron.runs", { id: job.id });
  expect(entries).toMatchObject([
    { status: "ok", runId: fired.runId, delivery: expect.stringMatching(/pending|sent/) },
  ]);
  const patched = await client.request("cron.update", {
    id: job.id,
    patch: { name: null, deliver: null, timeoutSeconds: 0, missed: "skip" },
  });
  expect(patched.job).toMatchObject({ missed: "skip", words: "every hour" });
  for (const gone of ["name", "deliver", "timeoutSeconds"]) expect(patched.job).not.toHaveProperty(gone);
  expect(await client.request("cron.remove", { id: job.id })).toMatchObject({ removed: true });
  expect((await client.request("cron.list", {})).jobs).toEqual([]);
  // The job's session and its history are kept.
  const history = await client.request("chat.history", { sessionKey: job.key });
  expect(history.messages[0]).toMatchObject({ provenance: { kind: "cron", source: job.id } });
  expect(engine.accepting().ok).toBe(true);
});

test("the next due times of a schedule can be requested before it is stored", async () => {
  const world = fakeWorld();
  const { client: open } = await openHouse({ world });
  const client = await open();
  const schedule = { kind: "cron", expr: "30 7 * * 1-5", tz: "Europe/Berlin" } as const;
  const { words, dates } = await client.request("cron.preview", { schedule });
  expect(words).toBe("Monday to Friday at 07:30");
  expect(dates.map((date) => new Date(date).toISOString())).toEqual([
    "2026-01-01T06:30:00.000Z",
    "2026-01-02T06:30:00.000Z",
    "2026-01-05T06:30:00.000Z",
    "2026-01-06T06:30:00.000Z",
    "2026-01-07T06:30:00.000Z",
  ]);
});

test("reading jobs needs operator.read, everything else operator.admin", async () => {
  const { client: open } = await openHouse({ gateway: { tokens } });
  const { job } = await add(await open());
  for (const token of [READER, WRITER]) {
    const client = await open({ token });
    expect((await client.request("cron.list", {})).count).toBe(1);
    expect((await client.request("cron.runs", { id: job.id })).entries).toEqual([]);
    expect((await client.request("cron.preview", { schedule: EVERY })).dates).toHaveLength(5);
    const { id } = job;
    const changes = [
      () => add(client),
      () => client.request("cron.update", { id, patch: {} }),
      () => client.request("cron.run", { id }),
      () => client.request("cron.remove", { id }),
    ];
    for (const change of changes) expect(await refusal(change())).toBe("missing_scope");
  }
});

test("I9: a token cannot list, find or create jobs whose sessions it does not cover", async () => {
  const { client: open } = await openHouse({ gateway: { tokens } });
  const admin = await open();
  const { job } = await add(admin, { deliver: { to: "agent:research:main" } });
  const narrow = await open({ token: NARROW });
  expect(await narrow.request("cron.list", {})).toMatchObject({ count: 0, jobs: [] });
  const unknown = "there is no job";
  const { id } = job;
  for (const asked of [id, "00000000-0000-4000-8000-000000000000"]) {
    const tries = [
      narrow.request("cron.runs", { id: asked }),
      narrow.request("cron.update", { id: asked, patch: { enabled: false } }),
      narrow.request("cron.run", { id: asked }),
      narrow.request("cron.remove", { id: asked }),
    ];
    await Promise.all(tries.map((one) => expect(one).rejects.toThrow(unknown)));
  }
  expect(await refusal(add(narrow))).toBe("not_visible");
  expect((await admin.request("cron.list", {})).jobs).toHaveLength(1);
});

test("I9: the key of a job's destination is hidden from a reader who does not see that session", async () => {
  const some = [
    { token: NARROW, role: "operator", scopes: ["operator.admin"], sessions: ["cron:*"] },
  ] as const;
  const { client: open } = await openHouse({ gateway: { tokens: some } });
  await add(await open(), { deliver: { to: "agent:research:main" } });
  const narrow = await open({ token: NARROW });
  const [job] = (await narrow.request("cron.list", {})).jobs;
  expect(job?.deliver).toEqual({ channel: "webchat", to: "(not visible)" });
  expect(await refusal(add(narrow, { deliver: { to: "agent:research:main" } }))).toBe("not_visible");
});

test("I9: only callers who may write to a job's destination may set the job's text", async () => {
  const { client: open } = await openHouse({
    gateway: {
      tokens: [
        {
          ...{ token: NARROW, role: "operator", scopes: ["operator.admin"] },
          sessions: ["cron:*", "agent:research:*"],
        },
      ],
    },
  });
  const admin = await open();
  const { job } = await add(admin, { agentId: "research", deliver: { to: "main" } });
  const narrow = await open({ token: NARROW });
  const change = (patch: object) => narrow.request("cron.update", { id: job.id, patch });
  expect(await refusal(change({ message: "say that I won" }))).toBe("not_visible");
  expect((await admin.request("cron.list", {})).jobs[0]).toMatchObject({ message: "what is new?" });
  expect(await refusal(change({ enabled: false }))).toBe("done");
  expect(await refusal(change({ message: "for me alone", deliver: null }))).toBe("done");
  expect(await refusal(change({ message: "again" }))).toBe("done");
});

test("I9: events of jobs are sent only to callers who see the jobs", async () => {
  const { client: open } = await openHouse({ gateway: { tokens } });
  const [admin, narrow] = [await open(), await open({ token: NARROW })];
  const heard: string[] = [];
  const told = (name: string) => (event: { event: string; payload?: unknown }) => {
    if (event.event === "cron") heard.push(`${name} ${(event.payload as { change: string }).change}`);
  };
  admin.onEvent(told("admin"));
  narrow.onEvent(told("narrow"));
  const { job } = await add(admin);
  const { runId } = await admin.request("cron.run", { id: job.id });
  await admin.request("agent.wait", { runId });
  await admin.request("cron.remove", { id: job.id });
  await narrow.request("health", {});
  await expect.poll(() => heard).toEqual(["admin added", "admin fired", "admin ended", "admin removed"]);
});

test("the same idempotency key creates one job and one run; the key with other params is a conflict", async () => {
  const { client: open } = await openHouse();
  const client = await open();
  const first = await add(client, { idempotencyKey: "one" });
  expect(await add(client, { idempotencyKey: "one" })).toEqual(first);
  expect(await refusal(add(client, { idempotencyKey: "one", message: "other" }))).toBe(
    "idempotency_conflict",
  );
  const { id } = first.job;
  const turn = await client.request("cron.run", { id, idempotencyKey: "two" });
  expect(await client.request("cron.run", { id, idempotencyKey: "two" })).toEqual(turn);
  await client.request("agent.wait", { runId: turn.runId });
  expect((await client.request("cron.runs", { id })).entries).toHaveLength(1);
  await client.request("cron.remove", { id, idempotencyKey: "three" });
  expect(await client.request("cron.remove", { id, idempotencyKey: "three" })).toMatchObject({
    removed: true,
  });
});

const WRONG: readonly (readonly [object, RegExp])[] = [
  [{ message: " \n" }, /message must not be empty/],
  [{ message: "x".repeat(16_001) }, /at most 16000 characters/],
  [{ name: "two\nlines" }, /name must be one line/],
  [{ name: "x".repeat(201) }, /name has 201 characters/],
  [{ agentId: "nobody" }, /there is no agent "nobody"/],
  [{ agentId: "agent:main:main" }, /there is no agent/],
  [{ thinking: "deeply" }, /thinking "deeply" is not valid/],
  [{ model: "no/such" }, /unknown model/],
  [{ deliver: { to: "agent:nobody:main" } }, /no session/],
  [{ deliver: { channel: "telegram", to: "1" } }, /no channel "telegram"/],
  [{ deliver: { channel: "last", to: "agent:nobody:main" } }, /no session/],
  [{ deliver: { channel: "last", to: "main", threadId: "1" } }, /takes a session alone/],
  [{ deliver: {} }, /to is required/],
  [{ schedule: { kind: "weekly" } }, /schedule.kind must be one of/],
  [{ schedule: { kind: "every", everyMs: 5.5 } }, /everyMs must be a whole number/],
  [{ schedule: { kind: "every", everyMs: 500 } }, /10 seconds/],
  [{ schedule: { kind: "cron", expr: "x".repeat(201) } }, /at most 200 characters/],
  [{ missed: "twice" }, /missed must be one of/],
  [{ timeoutSeconds: 10 ** 9 }, /7 days/],
  [{ every: "hour" }, /unknown param "every"/],
];

test("an invalid job is refused with the reason", async () => {
  const { client: open } = await openHouse();
  const client = await open();
  for (const [more, words] of WRONG) {
    await expect(add(client, more), JSON.stringify(more).slice(0, 80)).rejects.toThrow(words);
  }
  expect((await client.request("cron.list", {})).count).toBe(0);
  const { job } = await add(client);
  const own = client.request("cron.update", { id: job.id, patch: { deliver: { to: job.key } } });
  await expect(own).rejects.toThrow();
});

test("I14: secrets in names and messages are redacted in answers, and stored unchanged", async () => {
  const { client: open, store } = await openHouse();
  const client = await open();
  const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
  await add(client, { name: `with ${secret}`, message: `use ${secret}` });
  expect(JSON.stringify(await client.request("cron.list", {}))).not.toContain(secret);
  const row = await store.db.selectFrom("cron_jobs").select(["name", "message"]).executeTakeFirst();
  expect(row).toEqual({ name: `with ${secret}`, message: `use ${secret}` });
});

test("for each caller, the pages of the list together contain every job once", async () => {
  const { client: open } = await openHouse();
  const client = await open();
  for (let made = 0; made < 7; made += 1)
    await add(client, { name: `job ${made}`, agentId: made % 2 ? "main" : "writer" });
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.request("cron.list", { limit: 3, ...optional({ cursor }) });
    expect(page.count).toBeLessThanOrEqual(3);
    names.push(...page.jobs.map((job) => job.name ?? ""));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  // Jobs created in the same millisecond are ordered by id.
  expect(names.sort()).toEqual([0, 1, 2, 3, 4, 5, 6].map((made) => `job ${made}`));
  const writers = await client.request("cron.list", { agentId: "Writer", limit: 2 });
  expect(writers.jobs.map((job) => job.agentId)).toEqual(["writer", "writer"]);
  await expect(client.request("cron.list", { cursor: "nonsense" })).rejects.toThrow("cursor");
});

test("a job above the maximum number of jobs is refused", async () => {
  const { client: open, store } = await openHouse();
  const client = await open();
  const { job } = await add(client);
  await store.transaction(async (tx) => {
    const [row] = await tx.selectFrom("cron_jobs").selectAll().execute();
    if (row === undefined) throw new Error("the job is there");
    for (let made = 1; made < JOBS_MAX; made += 1) {
      await tx
        .insertInto("cron_jobs")
        .values({ ...row, id: `copy-${made}`, enabled: 0 })
        .execute();
    }
  });
  expect(await refusal(add(client))).toBe("too_many_jobs");
  await client.request("cron.remove", { id: job.id });
  expect(await refusal(add(client))).toBe("done");
});

test("with `cron.enabled: false` a job can be created and run by hand, and every answer says that schedules are disabled", async () => {
  const { client: open } = await openHouse({ choices: { features: { cron: { enabled: false } } } });
  const client = await open({ token: TOKEN });
  const made = await add(client);
  expect(made.note).toContain("cron.enabled is false");
  expect(await client.request("cron.list", {})).toMatchObject({ enabled: false, note: made.note });
  const { runId } = await client.request("cron.run", { id: made.job.id });
  expect((await client.request("agent.wait", { runId })).status).toBe("ok");
});
