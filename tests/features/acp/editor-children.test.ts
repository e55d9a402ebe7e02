// An editor that understands child sessions sees the sub-agents of its sessions as such; another one does not.

import type * as acp from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { makeHome, startGateway } from "../../cli/kit.ts";
import { type Editor, openEditor } from "./editor-kit.ts";
import { until } from "./kit.ts";
import { AcpChecker } from "./schema.ts";

/** Opens an editor with these capabilities on the offline model. */
async function openOn(capabilities: object) {
  const { home } = await makeHome({ agents: { list: [{ id: "main" }] } });
  await startGateway(home);
  const editor = await openEditor(home);
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
