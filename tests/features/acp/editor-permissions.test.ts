// An editor answers the permission requests of its sessions, and lists the sessions of the gateway.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type * as acp from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../../cli/kit.ts";
import { type AnswerPermission, openEditor } from "./editor-kit.ts";
import { until } from "./kit.ts";

const choose = (optionId: string): acp.RequestPermissionResponse => ({
  outcome: { outcome: "selected", optionId },
});

/** Opens an editor on the offline model, with the default settings. Its answers are taken in order. */
async function openAsker(...answers: (string | AnswerPermission)[]) {
  const { home } = await makeHome({ agents: { list: [{ id: "main" }, { id: "helper" }] } });
  await startGateway(home);
  const asked: acp.RequestPermissionRequest[] = [];
  const editor = await openEditor(home, [], (request, withdrawn) => {
    asked.push(request);
    const answer = answers.shift() ?? "deny";
    return typeof answer === "string" ? choose(answer) : answer(request, withdrawn);
  });
  const made = (name: string) => existsSync(join(home, ".parley", "workspace", name));
  return { home, asked, editor, made, sessionId: await editor.open() };
}

const endOf = ({ updates }: { readonly updates: readonly acp.SessionUpdate[] }, toolCallId: string) =>
  updates.findLast(
    (update) => update.sessionUpdate === "tool_call_update" && update.toolCallId === toolCallId,
  );

test("an editor is asked before a command runs, about the call that it shows, and its answer counts", async () => {
  const { asked, editor, made, sessionId } = await openAsker("once", "deny", "always");
  expect(await editor.prompt(sessionId, "run: touch one")).toBe("end_turn");
  expect([made("one"), asked.length]).toEqual([true, 1]);
  const [first] = asked;
  const call = editor.updates.find((update) => update.sessionUpdate === "tool_call");
  expect(first).toMatchObject({
    sessionId,
    toolCall: { toolCallId: (call as acp.ToolCall).toolCallId, title: "touch one", kind: "execute" },
    options: [
      { optionId: "once", kind: "allow_once" },
      { optionId: "session", kind: "allow_always" },
      { optionId: "always", kind: "allow_always" },
      { optionId: "deny", kind: "reject_once" },
    ],
  });
  expect(endOf(editor, first?.toolCall.toolCallId ?? "")).toMatchObject({ status: "completed" });
  expect(await editor.prompt(sessionId, "run: touch two")).toBe("end_turn");
  expect([made("two"), asked.length]).toEqual([false, 2]);
  expect(endOf(editor, asked[1]?.toolCall.toolCallId ?? "")).toMatchObject({ status: "failed" });
  for (const _ of "ab") expect(await editor.prompt(sessionId, "run: printf three")).toBe("end_turn");
  expect([asked.length, editor.texts().at(-1)]).toEqual([3, expect.stringContaining("three")]);
});

test("a request that is answered elsewhere is withdrawn from the editor", async () => {
  const gone = Promise.withResolvers<void>();
  const { home, editor, made, sessionId } = await openAsker(async (_, withdrawn) => {
    const listed = await run(home, ["permissions"]);
    void run(home, ["permissions", "allow", listed.out.split(" ")[0] ?? ""]);
    await new Promise<void>((resolve) => withdrawn.addEventListener("abort", () => resolve()));
    gone.resolve();
    return { outcome: { outcome: "cancelled" } };
  });
  expect(await editor.prompt(sessionId, "run: touch one")).toBe("end_turn");
  await gone.promise;
  expect(made("one")).toBe(true);
});

test("the request of a sub-agent is a call of its own, which ends with the request", async () => {
  const { asked, editor, sessionId } = await openAsker("once");
  await editor.prompt(sessionId, "spawn: run: touch one");
  await until(
    () => asked,
    ({ length }) => length === 1,
  );
  const { toolCall } = asked[0] as acp.RequestPermissionRequest;
  expect(toolCall.toolCallId).toMatch(/^permission:/);
  expect(JSON.stringify(toolCall.content)).toMatch(/Session agent:main:subagent:\S+ asks:/);
  expect(editor.updates).toContainEqual(
    expect.objectContaining({ sessionUpdate: "tool_call", toolCallId: toolCall.toolCallId }),
  );
  await editor.saw(
    (update) =>
      update.sessionUpdate === "tool_call_update" &&
      update.toolCallId === toolCall.toolCallId &&
      update.status === "completed",
  );
});

test("a cancelled prompt withdraws its request before it ends", async () => {
  const begun = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<string>();
  const { editor, made, sessionId } = await openAsker(async (_, withdrawn) => {
    withdrawn.addEventListener("abort", () => gone.resolve("withdrawn"));
    begun.resolve();
    return new Promise(() => {});
  });
  const answered = editor.prompt(sessionId, "run: touch one");
  await begun.promise;
  await editor.agent.notify("session/cancel", { sessionId });
  expect(await answered).toBe("cancelled");
  expect([await gone.promise, made("one")]).toEqual(["withdrawn", false]);
});

test("an editor lists the sessions, page by page, each with the folder of its agent", async () => {
  const { home, editor, sessionId } = await openAsker();
  await editor.prompt(sessionId, "hello there");
  const { agentCapabilities } = await editor.agent.request("initialize", { protocolVersion: 1 });
  expect(agentCapabilities?.sessionCapabilities?.list).toEqual({});
  const all = await editor.agent.request("session/list", {});
  const cwd = join(home, ".parley", "workspace");
  expect(all.sessions[0]).toMatchObject({ sessionId, cwd, title: "ed", updatedAt: expect.any(String) });
  expect(all.sessions.map((one) => one.sessionId)).toContain("agent:helper:main");
  expect((await editor.agent.request("session/list", { cwd: "/nowhere" })).sessions).toEqual([]);
  const here = await editor.agent.request("session/list", { cwd: `${cwd}/` });
  expect(here.sessions.map((one) => one.sessionId)).toContain(sessionId);
  expect(here.sessions.map((one) => one.sessionId)).not.toContain("agent:helper:main");
  await expect(editor.agent.request("session/list", { cursor: "no cursor" })).rejects.toMatchObject({
    code: -32_602,
  });
  const helper = await openEditor(home, ["--agent", "helper"]);
  await helper.agent.request("initialize", { protocolVersion: 1 });
  const ofHelper = await helper.agent.request("session/list", {});
  expect(ofHelper.sessions.map((one) => one.sessionId)).toEqual(["agent:helper:main"]);
  const one = await openEditor(home, ["--session", "main"]);
  await one.agent.request("initialize", { protocolVersion: 1 });
  expect((await one.agent.request("session/list", {})).sessions).toMatchObject([
    { sessionId: "agent:main:main" },
  ]);
});
