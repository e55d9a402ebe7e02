// An editor that understands child sessions sees the sub-agents of its sessions as such; another one does not.

import type * as acp from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import type { ChatEvent, FlowData } from "../../../src/contract/events.ts";
import { EditorChildren } from "../../../src/features/acp/editor/children.ts";
import { makeHome, startGateway } from "../../cli/kit.ts";
import { type Editor, openEditor } from "./editor-kit.ts";
import { until } from "./kit.ts";
import { AcpChecker } from "./schema.ts";

/** Opens an editor with these capabilities on the offline model. */
async function openOn(capabilities: object, args: readonly string[] = []) {
  const { home } = await makeHome({ agents: { list: [{ id: "main" }] } });
  await startGateway(home);
  const editor = await openEditor(home, args);
  return { editor, sessionId: await editor.open(capabilities) };
}

/** Returns the updates so far with their sessions. */
function sent({ lines }: Editor): acp.SessionNotification[] {
  const messages = lines.map(
    (line) => JSON.parse(line) as { method?: string; params: acp.SessionNotification },
  );
  return messages.flatMap(({ method, params }) => (method === "session/update" ? [params] : []));
}

const announced = (all: readonly acp.SessionNotification[]) =>
  all.flatMap(({ sessionId, update }) =>
    update.sessionUpdate === "subagent_update" ? [{ in: sessionId, ...update }] : [],
  );
const textIn = (all: readonly acp.SessionNotification[], id: string) =>
  all
    .flatMap(({ sessionId, update }) =>
      sessionId === id && update.sessionUpdate === "agent_message_chunk" && update.content.type === "text"
        ? [update.content.text]
        : [],
    )
    .join("");

test("a sub-agent is announced before its work, which has its session, and its end is told", async () => {
  const { editor, sessionId } = await openOn({ subagents: {} });
  expect(await editor.prompt(sessionId, "spawn: say the part is done")).toBe("end_turn");
  const all = await until(
    () => sent(editor),
    (list) => announced(list).some(({ state }) => state?.state === "idle"),
  );
  const [first, last] = announced(all);
  const child = first?.sessionId ?? "";
  expect(child).toMatch(/^agent:main:subagent:/);
  expect(first).toMatchObject({ in: sessionId, title: "say the part is done", state: { state: "running" } });
  expect(last).toMatchObject({
    in: sessionId,
    sessionId: child,
    state: { state: "idle", stopReason: "end_turn" },
  });
  const own = all.filter((one) => one.sessionId === child);
  expect(all.findIndex(({ update }) => update.sessionUpdate === "subagent_update")).toBeLessThan(
    all.findIndex((one) => one.sessionId === child),
  );
  expect(own[0]?.update).toMatchObject({
    ...{ sessionUpdate: "session_message", senderSessionId: sessionId, recipientSessionId: child },
    content: [{ type: "text", text: "say the part is done" }],
  });
  expect(textIn(all, child)).toContain("the part is done");
  const checker = new AcpChecker({ unstable: true });
  checker.expect("client", { id: 0, method: "initialize" });
  for (const line of editor.lines.filter((one) => one.includes('"session/update"')))
    checker.check("agent", line);
  expect(checker.problems).toEqual([]);
});

test("an editor that does not understand child sessions hears of no other session than its own", async () => {
  const { editor, sessionId } = await openOn({});
  for (const text of ["spawn: say the part is done", "list sessions"])
    expect(await editor.prompt(sessionId, text)).toBe("end_turn");
  expect(editor.texts().at(-1)).toContain("subagent");
  expect(new Set(sent(editor).map((one) => one.sessionId))).toEqual(new Set([sessionId]));
  expect(announced(sent(editor))).toEqual([]);
});

test("a sub-agent that the editor opens itself sends each of its updates once", async () => {
  const { editor, sessionId } = await openOn({ subagents: {} });
  await editor.prompt(sessionId, "spawn: say the part is done");
  const all = await until(
    () => announced(sent(editor)),
    (list) => list.some(({ state }) => state?.state === "idle"),
  );
  const child = all[0]?.sessionId ?? "";
  await editor.agent.request("session/load", { sessionId: child, cwd: "/tmp", mcpServers: [] });
  expect(await editor.prompt(child, "say once only")).toBe("end_turn");
  expect(textIn(sent(editor), child).split("once")).toHaveLength(2);
});

test("a closed session tells nothing more of its sub-agents", async () => {
  const { editor, sessionId } = await openOn({ subagents: {} }, ["--session", "main"]);
  await editor.agent.request("session/resume", { sessionId: "main", cwd: "/tmp" });
  await editor.prompt(sessionId, "spawn: wait 1 second, then say the files are counted");
  expect(announced(sent(editor))).toHaveLength(1);
  await editor.agent.request("session/close", { sessionId });
  const before = sent(editor).length;
  // The other name of the same session is still open, and its sub-agent ends after the first one.
  await editor.prompt("main", "spawn: wait 2 seconds, then say done");
  const after = await until(
    () => sent(editor).slice(before),
    (all) => announced(all).some(({ state }) => state?.state === "idle"),
  );
  const second = announced(after)[0]?.sessionId;
  expect(new Set(after.map((one) => one.sessionId))).toEqual(new Set(["main", second]));
});

/** Announces a sub-agent to an editor without a gateway. */
function childrenOf() {
  const told: acp.SessionNotification[] = [];
  const children = new EditorChildren(() => "id");
  const send = (sessionId: string, update: acp.SessionUpdate) => void told.push({ sessionId, update });
  const flow = (flowId: string, step: FlowData["step"], from: string, to: string): FlowData => ({
    ...{ flowId, step, from, to, turn: 1, turnsMax: 1, text: "count" },
  });
  return {
    ...{ children, states: () => announced(told).map((one) => one.state) },
    announce: (id: string) => children.announce(flow(id, "task", "main", id), { sessionId: "main", send }),
    finish: (id: string, flowId = id) => children.finish(flow(flowId, "ended", id, "main")),
  };
}

test("only the end of its job ends a sub-agent, with the status of the job's last run", () => {
  const { children, states, announce, finish } = childrenOf();
  announce("child");
  const chat = { sessionKey: "child", seq: 1, atMs: 1 };
  children.onChat({ ...chat, runId: "1", state: "error", errorMessage: "no credit" } as ChatEvent, "");
  finish("child", "a message");
  expect(states()).toEqual([{ state: "running" }]);
  children.onChat({ ...chat, runId: "2", state: "final" } as ChatEvent, "done");
  for (const flowId of ["child", "child"]) finish("child", flowId);
  expect(states()).toEqual([{ state: "running" }, { state: "idle", stopReason: "end_turn" }]);
});

test("a connection shows a limited number of sub-agents at a time", () => {
  const { states, announce, finish } = childrenOf();
  for (let index = 0; index < 501; index += 1) announce(`child-${index}`);
  expect(states()).toHaveLength(500);
  finish("child-7");
  for (const id of ["child-500", "child-501"]) announce(id);
  expect(states()).toHaveLength(502);
});
