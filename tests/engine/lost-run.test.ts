// Tool calls of a run that another process has taken, because this process was paused for too long.

import { expect, test } from "vitest";
import type { Run } from "../../src/core/shapes/run.ts";
import { openPermission } from "../../src/flows/permission.ts";
import { readMemory } from "../../src/store/queries/agent-memory.ts";
import { openPermissions } from "../../src/store/queries/permissions.ts";
import { callTool } from "../../src/tools/catalog.ts";
import { askIn } from "../kit/engine/asking.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { takeRun } from "../kit/store/take-run.ts";
import { type App, openApp } from "../tools/app.ts";

const MAIN = "agent:main:main";

/** Starts a run. `take` gives it to another process; `call` calls a tool as the run. */
async function running() {
  const app = await openApp();
  cleanup(() => app.close());
  const handle = await app.heldHandle(MAIN);
  const call = async (name: string, args: Record<string, unknown>, run: Run = handle.run) => {
    const ctx = { ...app.context(await app.session(MAIN)), run, wait: handle.wait };
    return callTool(ctx, { callId: "call", attempt: run.attempt, name, arguments: args });
  };
  return { app, call, handle, take: () => takeRun(app.engine.store, handle.run.runId) };
}

/** Returns the rows that a tool call could write. */
async function rowsOf({ engine }: App) {
  const { db } = engine.store;
  const tables = ["sessions", "runs", "flows", "deliveries", "agent_memory", "sent_files", "waits"] as const;
  return Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute()));
}

const SPAWN = { task: "look", agentId: "main" };

test.each([
  ["memory", { action: "add", text: "- The tea is green." }],
  ["sessions_send", { sessionKey: "agent:research:main", message: "hello", timeoutSeconds: 0 }],
  ["sessions_spawn", SPAWN],
] as const)("I1: %s writes nothing for a run that another process has", async (name, args) => {
  const { app, call, take } = await running();
  await take();
  const before = await rowsOf(app);
  expect(await call(name, args)).toMatchObject({ code: "run_aborted" });
  expect(await rowsOf(app)).toEqual(before);
});

test("I1: subagents cancels nothing for a run that another process has", async () => {
  const { app, call, take } = await running();
  const { childSessionKey: sessionKey } = await call("sessions_spawn", SPAWN);
  await take();
  const before = await rowsOf(app);
  for (const named of [sessionKey, "all"]) {
    const cancelled = await call("subagents", { action: "cancel", sessionKey: named });
    expect(cancelled).toMatchObject({ code: "run_aborted" });
  }
  expect(await rowsOf(app)).toEqual(before);
});

test("AP1: a run that another process has deletes no request, and runs no command", async () => {
  const { app, call, handle, take } = await running();
  const { run } = handle;
  const { engine } = app;
  await engine.commit((unit) =>
    openPermission(unit, {
      ...{ sessionKey: MAIN, agentId: "main", runId: run.runId, attempt: 1, title: "true", rawInput: {} },
      ...{ askMs: 60_000, about: { callId: "call", folder: "/", files: [] } },
    }),
  );
  await take();
  expect(await call("exec", { command: "true" }, { ...run, attempt: 2 })).toMatchObject({
    code: "run_aborted",
  });
  expect(await openPermissions(engine.store.db, engine.now())).toHaveLength(1);
});

test("PD1: a run that another process has asks nobody, and its request is denied", async () => {
  const { app, handle, take } = await running();
  await take();
  const asked = { title: "deploy", askMs: 60_000 };
  expect(await askIn({ engine: app.engine }, handle, asked)).toBe("deny");
  const { db } = app.engine.store;
  expect(await db.selectFrom("permissions").select("id").execute()).toEqual([]);
});

test("a run that this process holds changes the memory", async () => {
  const { app, call } = await running();
  expect(await call("memory", { action: "add", text: "- tea" })).toMatchObject({ status: "ok" });
  expect((await readMemory(app.engine.store.db, "main")).text).toBe("- tea");
});
