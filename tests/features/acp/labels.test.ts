// The labels of what an ACP agent's program reports to have read and written: a real program and a real gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { labelFrom } from "../../../src/core/rules/labels/labels.ts";
import { type ReportedCall, readReport } from "../../../src/core/rules/labels/reported.ts";
import { addLabels, outsideFilesAt } from "../../../src/store/queries/labels.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { oldClient } from "../../gateway/clients/mcp.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { openStage, type Stage, type StageOptions, TOKEN, until } from "./kit.ts";

type Json = Record<string, unknown>;

const MAIN = "agent:main:main";
const VISITOR = "agent:other:visitor";
const PAGE = { kind: "fetch", rawInput: { url: "https://tea.example/a?b=c" } };

let calls = 0;

/** Returns the reports of one call, from its begin to its end. */
function reports(more: Json, status = "completed", from?: string): Json[] {
  calls += 1;
  const toolCallId = `call-${calls}`;
  const begin = { sessionUpdate: "tool_call", toolCallId, title: "A call", status: "pending", ...more };
  const end = { sessionUpdate: "tool_call_update", toolCallId, status };
  return [begin, end].map((update) => ({ update, ...(from === undefined ? {} : { from }) }));
}

const play = (...steps: readonly Json[]): string => `play ${JSON.stringify(steps)}`;

async function open(options: StageOptions = {}) {
  const workspace = temporaryFolder();
  writeFileSync(join(workspace, "notes.md"), "notes");
  const stage = await openStage({ ...options, main: { workspace, ...options.main } });
  return { stage, workspace };
}

async function outside({ app }: Stage): Promise<string[]> {
  const { labels } = (await getSession(app.store.db, MAIN)) ?? {};
  return (labels?.outside ?? []).map(({ source }) => source);
}

/** Waits for the only open question, and returns its id. */
async function permissionOf({ client }: Stage, title?: string): Promise<string> {
  const list = () => client.request("permissions.list", {});
  const { permissions } = await until(list, (answer) => answer.permissions.length > 0);
  expect(permissions).toMatchObject([title === undefined ? {} : { title }]);
  return permissions[0]?.id ?? "";
}

const call = (more: Partial<ReportedCall>): ReportedCall => ({
  ...{ names: [], kind: "", title: "", args: {}, paths: [], created: [] },
  ...more,
});

test.each([
  [{ kind: "fetch", args: { url: "https://tea.example/x" } }, ["web tea.example"]],
  [
    { kind: "fetch", args: { urls: ["https://a.example", "https://b.example/c"] } },
    ["web a.example", "web b.example"],
  ],
  [{ kind: "fetch", args: { prompt: "the news" } }, ["program coder"]],
  [{ args: { url: "http://tea.example" } }, ["web tea.example"]],
  [{ kind: "search", names: ["WebSearch"], args: { query: "tea" } }, ["program coder"]],
  [{ kind: "search", title: "Searching the web for: tea" }, ["program coder"]],
  [{ kind: "search", names: ["grep"], args: { pattern: "the web" } }, []],
  [{ kind: "execute", args: { command: "curl -s tea.example" } }, ["command curl"]],
  [{ kind: "execute", args: { command: ["bash", "-lc", "git pull"] } }, ["command git pull"]],
  [{ kind: "execute", args: { command: "ls" } }, []],
  [{ kind: "other", names: ["mcp__mail__list"] }, ["mcp mail"]],
  [{ kind: "other", title: "list (mail MCP Server)" }, ["mcp mail"]],
  [{ kind: "execute", args: { server: "mail", tool: "list", arguments: {} } }, ["mcp mail"]],
  [{ kind: "other", names: ["mcp__parley__sessions_history"] }, []],
  [{ kind: "think", args: { url: "https://tea.example" } }, []],
])("the report %j of a program has the sources %j", (report, sources) => {
  expect(readReport("coder", call(report)).outside).toEqual(sources);
});

test.each([
  [{ kind: "read", args: { file_path: "/a" }, paths: ["/a", "/b"] }, ["read /a", "read /b"], []],
  [{ kind: "edit", paths: ["/a"] }, ["read /a"], ["edit /a"]],
  [{ kind: "edit", paths: ["/a"], created: ["/a"] }, [], ["write /a"]],
  [{ kind: "execute", args: { command: ["bash", "-lc", "cat a"] } }, ["exec cat a"], ["exec cat a"]],
  [{ kind: "search" }, ["read undefined"], []],
  [{ kind: "delete", paths: ["/a"] }, [], []],
])("the report %j of a program reads %j and writes %j", (report, reads, writes) => {
  const content = readReport("coder", call(report));
  const shown = [content.reads, content.writes].map((files) =>
    files.map(({ name, arguments: { path, command } }) => `${name} ${command ?? path}`),
  );
  expect(shown).toEqual([reads, writes]);
});

test("I15: a page that a program reports to have fetched labels its session, also by a sub-agent", async () => {
  const { stage } = await open();
  await stage.say(play(...reports({ kind: "think" }), ...reports(PAGE)));
  expect(await outside(stage)).toEqual(["web tea.example"]);
  await stage.client.request("sessions.reset", { key: MAIN });
  const child = {
    sessionUpdate: "subagent_update",
    sessionId: "child",
    title: "Reader",
    state: { state: "running" },
  };
  await stage.say(play({ update: child }, ...reports(PAGE, "completed", "child")));
  expect(await outside(stage)).toEqual(["web tea.example"]);
});

test("a call that an owner did not permit labels nothing", async () => {
  const { stage } = await open({ runtime: { permissions: "deny" } });
  const toolCall = { toolCallId: "denied", title: "Fetch", ...PAGE };
  const ask = { toolCall, options: [{ kind: "reject_once", name: "No", optionId: "no" }] };
  const end = { sessionUpdate: "tool_call_update", toolCallId: "denied", status: "failed" };
  await stage.say(play({ ask }, { update: end }));
  expect(await outside(stage)).toEqual([]);
});

/** Opens a stage with a session that a visitor may read. */
async function openVisited() {
  const tokens = [
    {
      token: "a-token-of-a-visitor-0123456789",
      role: "operator",
      scopes: ["operator.admin"],
      sessions: [VISITOR],
    },
  ];
  const { stage } = await open({ config: { gateway: { port: 0, auth: { token: TOKEN, tokens } } } });
  await stage.say("hello", VISITOR);
  return stage;
}

const send = (message: string, sessionKey = VISITOR, timeoutSeconds = 0): string =>
  `sessions_send ${JSON.stringify({ sessionKey, message, timeoutSeconds })}`;

/** Denies the call of a run that asks, and returns what the visitor's session has. */
async function denyLeak(stage: Stage, runId: string): Promise<string> {
  const id = await permissionOf(stage, `write to the session ${VISITOR}`);
  await stage.client.request("permissions.answer", { id, decision: "deny" });
  await stage.end(runId);
  return JSON.stringify(await stage.messages(VISITOR));
}

test("I16: after a page, a session tool of the program asks an owner before a text leaves", async () => {
  const stage = await openVisited();
  const runId = await stage.begin(play({ mcp: send("before") }, ...reports(PAGE), { mcp: send("after") }));
  const shown = await denyLeak(stage, runId);
  expect([shown.includes("before"), shown.includes("after")]).toEqual([true, false]);
});

test("I16: so does one after the answer of a client that has read a page meanwhile", async () => {
  const stage = await openVisited();
  const { db } = stage.app.store;
  const desk = await oldClient({ http: stage.url.replace("ws", "http") }, "desk", TOKEN);
  const call = (name: string, args: Json) => desk.callTool({ name, arguments: args });
  await call("sessions_inbox", {});
  const key = "agent:main:mcp:desk";
  const runId = await stage.begin(play({ mcp: send("What is new?", key, 60) }, { mcp: send("after") }));
  await until(
    async () => JSON.stringify(await call("sessions_inbox", {})),
    (inbox) => inbox.includes("What is new?"),
  );
  const { sessionId = "" } = (await getSession(db, key)) ?? {};
  const page = labelFrom("outside", "web tea.example", 1);
  await stage.app.store.transaction((tx) => addLabels(tx, { key, sessionId }, page, { at: 1 }));
  await call("sessions_send", { sessionKey: MAIN, message: "News.", timeoutSeconds: 0 });
  expect(await denyLeak(stage, runId)).not.toContain("after");
});

test("OF1: a file that a program edits after a page is outside, and labels the program that reads it", async () => {
  const { stage, workspace } = await open();
  const path = join(workspace, "notes.md");
  const edit = { kind: "edit", locations: [{ path }] };
  await stage.say(play(...reports(edit)));
  expect(await outsideFilesAt(stage.app.store.db, path)).toEqual([]);
  await stage.say(play(...reports(PAGE), ...reports(edit)));
  await stage.client.request("sessions.reset", { key: MAIN });
  await stage.say(play(...reports({ kind: "read", rawInput: { path: "notes.md" } })));
  expect(await outside(stage)).toEqual(["file notes.md"]);
  await stage.client.request("sessions.reset", { key: MAIN });
  const whole = { kind: "edit", content: [{ type: "diff", path, oldText: null, newText: "new" }] };
  await stage.say(play(...reports(whole)));
  expect(await outsideFilesAt(stage.app.store.db, path)).toEqual([]);
});

test("OF2: a file that a permitted command of a program changed after a page is outside", async () => {
  const { stage, workspace } = await open({ runtime: { permissions: "ask" } });
  await stage.say(play(...reports(PAGE)));
  const toolCall = { toolCallId: "sh", title: "sh", kind: "execute", rawInput: { command: "sh work.sh" } };
  const ask = { toolCall, options: [{ kind: "allow_once", name: "Yes", optionId: "yes" }] };
  const end = { sessionUpdate: "tool_call_update", toolCallId: "sh", status: "completed" };
  const runId = await stage.begin(play({ ask }, { update: end }));
  const id = await permissionOf(stage);
  writeFileSync(join(workspace, "new.md"), "obey me");
  await stage.client.request("permissions.answer", { id, decision: "allow" });
  await stage.end(runId);
  expect(await outsideFilesAt(stage.app.store.db, join(workspace, "new.md"))).toHaveLength(1);
});
