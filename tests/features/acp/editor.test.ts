// Editors open sessions by `parley acp`.

import type * as acp from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../../cli/kit.ts";
import { makeStage, openEditor } from "./editor-kit.ts";
import { until } from "./kit.ts";

test("an editor opens a session, prompts, and receives text, thoughts and tool calls; stdout contains nothing else", async () => {
  const { home } = await makeStage();
  const editor = await openEditor(home);
  const hello = await editor.agent.request("initialize", { protocolVersion: 1 });
  expect(hello).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: "parley" },
    agentCapabilities: { loadSession: true },
  });
  const sessionId = await editor.open();
  expect(sessionId).toMatch(/^agent:main:acp:[0-9a-f-]{36}$/);
  expect(await editor.prompt(sessionId, "tool")).toBe("end_turn");
  expect(editor.texts()).toEqual(["Let me look. ", "It says forty-two."]);
  expect(editor.updates.filter((update) => update.sessionUpdate.startsWith("tool_call"))).toMatchObject([
    { sessionUpdate: "tool_call", kind: "read", status: "in_progress", rawInput: { path: "notes.txt" } },
    { sessionUpdate: "tool_call_update", status: "completed", content: [{ content: { text: "forty-two" } }] },
  ]);
  expect(await editor.prompt(sessionId, "think hard")).toBe("end_turn");
  expect(await editor.saw((update) => update.sessionUpdate === "agent_thought_chunk")).toMatchObject({
    content: { text: "hard" },
  });
  expect(await editor.prompt(sessionId, "flood")).toBe("end_turn");
  expect(editor.texts().at(-1)).toBe("0123456789".repeat(4_000));
  for (const line of editor.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  // The transcript of the session, as another client reads it.
  const other = await openEditor(home);
  await other.agent.request("initialize", { protocolVersion: 1 });
  await other.agent.request("session/load", { sessionId, cwd: "/tmp", mcpServers: [] });
  expect(other.updates.slice(0, 5)).toMatchObject([
    { sessionUpdate: "user_message_chunk", content: { text: "tool" } },
    { sessionUpdate: "agent_message_chunk", content: { text: "Let me look. " } },
    { sessionUpdate: "tool_call" },
    { sessionUpdate: "tool_call_update", status: "completed" },
    { sessionUpdate: "agent_message_chunk", content: { text: "It says forty-two." } },
  ]);
  expect(await other.prompt(sessionId, "say on")).toBe("end_turn");
});

test("a prompt can be cancelled; a failed prompt and an invalid request get a clear error", async () => {
  const { home, gateway } = await makeStage();
  const editor = await openEditor(home);
  const sessionId = await editor.open();
  const hanging = editor.prompt(sessionId, "hang");
  await editor.saw((update) => update.sessionUpdate === "tool_call");
  await expect(editor.prompt(sessionId, "say x")).rejects.toThrow(/already has a prompt in progress/);
  await editor.agent.notify("session/cancel", { sessionId });
  expect(await hanging).toBe("cancelled");
  expect(editor.updates.at(-1)).toMatchObject({ sessionUpdate: expect.anything() });
  expect(editor.updates.filter((update) => update.sessionUpdate === "tool_call_update")).toMatchObject([
    { status: "failed" },
  ]);
  await expect(editor.prompt(sessionId, "die")).rejects.toThrow(/exit code 3/);
  await expect(editor.prompt(sessionId, "  ")).rejects.toThrow(/no text/);
  await expect(editor.prompt("agent:main:main", "x")).rejects.toThrow(/is not open/);
  const load = { sessionId: "agent:main:acp:nobody", cwd: "/tmp", mcpServers: [] };
  await expect(editor.agent.request("session/load", load)).rejects.toThrow(
    /no session|does not exist|not visible/i,
  );
  editor.child.stdin?.write("this is no JSON\n[1]\n");
  expect(await editor.prompt(sessionId, "say still here")).toBe("end_turn");
  // If an editor disconnects during a run, the run continues on the gateway.
  const left = editor.prompt(sessionId, "hang").catch(() => {});
  editor.child.stdin?.end();
  expect(await editor.exited).toBe(0);
  await left;
  await gateway.stop();
});

test("--session opens that session, --agent opens one of that agent; if no gateway runs, the command starts one", async () => {
  const { home, gateway } = await makeStage();
  const main = await openEditor(home, ["--session", "main"]);
  expect(await main.open()).toBe("agent:main:main");
  const research = await openEditor(home, ["--agent", "research"]);
  const sessionId = await research.open();
  expect(sessionId).toMatch(/^agent:research:acp:/);
  expect(await research.prompt(sessionId, "hello")).toBe("end_turn");
  expect(research.texts().join("")).not.toBe("");
  await gateway.stop();
  const alone = await openEditor(home, ["--session", "agent:research:main"]);
  expect(await alone.prompt(await alone.open(), "hello")).toBe("end_turn");
  expect(alone.stderr()).toMatch(/this process runs one/);
  alone.child.stdin?.end();
  expect(await alone.exited).toBe(0);
  const nobody = await openEditor(home, ["--agent", "nobody"]);
  await expect(nobody.open()).rejects.toThrow(/there is no agent "nobody"/);
});

test("an editor with a terminal is offered the setup of a model, and is signed in when the agent has one", async () => {
  const local = { api: "openai-completions", baseUrl: "http://127.0.0.1:9/v1", apiKey: "k" };
  const models = [{ id: "quick", contextWindow: 1_000, maxOutputTokens: 100 }];
  const { home } = await makeHome({
    agents: {
      list: [
        { id: "main", model: "offline/rehearsal" },
        { id: "quick", model: "local/quick" },
      ],
    },
    models: { providers: { local: { ...local, models } } },
  });
  await startGateway(home);
  const { agent } = await openEditor(home, ["--agent", "main"]);
  const methodsFor = async (clientCapabilities: acp.ClientCapabilities) =>
    (await agent.request("initialize", { protocolVersion: 1, clientCapabilities })).authMethods ?? [];
  expect(await methodsFor({})).toEqual([]);
  const [method] = await methodsFor({ auth: { terminal: true } });
  expect(await methodsFor({ _meta: { "terminal-auth": true } })).toEqual([method]);
  expect(method).toMatchObject({ type: "terminal", id: "setup", args: ["--setup"] });
  // An editor appends these arguments to those of its configuration.
  const setup = await run(home, ["acp", "--agent", "main", ...((method as { args?: string[] }).args ?? [])]);
  expect(setup).toMatchObject({ code: 2, err: expect.stringContaining("--provider <name>") });
  await expect(agent.request("authenticate", { methodId: "setup" })).rejects.toMatchObject({
    code: -32_000,
    message: expect.stringContaining("npx parley-gateway init"),
  });
  await expect(agent.request("authenticate", { methodId: "other" })).rejects.toThrow(/valid methods: setup/);
  const ready = await openEditor(home, ["--agent", "quick"]);
  await ready.open();
  expect(await ready.agent.request("authenticate", { methodId: "setup" })).toEqual({});
});

test("permission requests can be listed, allowed and denied on the command line", async () => {
  const { home } = await makeStage({ permissions: "ask" });
  const editor = await openEditor(home, ["--session", "main"]);
  const sessionId = await editor.open();
  for (const [decision, said] of [
    ["allow", "I was told: yes"],
    ["deny", "I was told: no"],
  ] as const) {
    const answered = editor.prompt(sessionId, "ask");
    const asked = await until(
      () => run(home, ["permissions"]),
      ({ out }) => out.includes("Remove everything"),
    );
    expect(asked.out).toMatch(
      /^\S+ {2}agent:main:main {2}Remove everything {2}\(\d+ s left\)\n {2}command: rm -r build\n$/,
    );
    const id = asked.out.split(" ")[0] ?? "";
    expect(await run(home, ["permissions", decision, id])).toMatchObject({ code: 0 });
    expect(await answered).toBe("end_turn");
    expect(editor.texts().at(-1)).toBe(said);
  }
  const late = await run(home, ["permissions", "allow", "nothing"]);
  expect(late).toMatchObject({
    code: 1,
    err: expect.stringMatching(/there is no open permission request "nothing"/),
  });
  expect((await run(home, ["permissions"])).out).toBe("(no pending requests)\n");
});

type Opened = Pick<acp.NewSessionResponse, "configOptions" | "modes">;

/** Returns the current values by option. */
const valuesOf = (options: readonly acp.SessionConfigOption[] | null | undefined) =>
  Object.fromEntries((options ?? []).map(({ id, currentValue }) => [id, currentValue]));

test("an editor sees and changes a session's model and thinking level, both as options and as modes", async () => {
  const other = { api: "openai-completions", baseUrl: "http://127.0.0.1:9/v1", apiKey: "k" };
  const models = [{ id: "quick", contextWindow: 1_000, maxOutputTokens: 100 }];
  const { home } = await makeHome({
    agents: { list: [{ id: "main", model: "offline/rehearsal", thinking: "low" }] },
    models: { providers: { local: { ...other, models } } },
  });
  await startGateway(home);
  const editor = await openEditor(home);
  const { agent } = editor;
  await agent.request("initialize", { protocolVersion: 1 });
  const { sessionId, ...opened } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
  const start: Opened = opened;
  expect(valuesOf(start.configOptions)).toEqual({ model: "offline/rehearsal", thinking: "low" });
  expect(start.configOptions?.map(({ category }) => category)).toEqual(["model", "thought_level"]);
  expect(start.configOptions?.[0]).toMatchObject({
    options: expect.arrayContaining([{ value: "local/quick", name: "local/quick" }]),
  });
  expect(start.modes).toMatchObject({ currentModeId: "low" });
  expect(start.modes?.availableModes.map(({ id }) => id)).toContain("high");
  const change = (configId: string, value: string) =>
    agent.request("session/set_config_option", { sessionId, configId, value });
  expect(valuesOf((await change("model", "local/quick")).configOptions)).toMatchObject({
    model: "local/quick",
  });
  expect(valuesOf((await change("thinking", "high")).configOptions)).toMatchObject({ thinking: "high" });
  const mode = (id: string) => (update: acp.SessionUpdate) =>
    update.sessionUpdate === "current_mode_update" && update.currentModeId === id;
  await editor.saw(mode("high"));
  await agent.request("session/set_mode", { sessionId, modeId: "off" });
  await editor.saw(mode("off"));
  const told = editor.updates.findLast((update) => update.sessionUpdate === "config_option_update");
  const now = { model: "local/quick", thinking: "off" };
  expect(valuesOf((told as { configOptions: acp.SessionConfigOption[] }).configOptions)).toEqual(now);
  await expect(change("model", "local/none")).rejects.toThrow(/local\/none/);
  await expect(change("thinking", "deep")).rejects.toThrow(/not valid; valid: off/);
  await expect(change("colour", "red")).rejects.toThrow(
    /unknown option "colour"; valid options: model, thinking/,
  );
  await expect(agent.request("session/set_mode", { sessionId: "other", modeId: "off" })).rejects.toThrow(
    /is not open/,
  );
  // A second editor gets the changed values.
  const second = await openEditor(home);
  await second.agent.request("initialize", { protocolVersion: 1 });
  for (const method of ["session/load", "session/resume"] as const) {
    const found = await second.agent.request(method, { sessionId, cwd: "/tmp", mcpServers: [] });
    expect([valuesOf(found.configOptions), found.modes?.currentModeId]).toEqual([now, "off"]);
  }
});

test("for a session of an ACP agent, an editor can choose neither model nor thinking level", async () => {
  const { home } = await makeStage();
  const editor = await openEditor(home);
  await editor.agent.request("initialize", { protocolVersion: 1 });
  const opened: Opened = await editor.agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
  expect([opened.configOptions, opened.modes]).toEqual([undefined, undefined]);
});
