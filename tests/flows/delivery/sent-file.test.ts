// The tool `send_file`: which people get a file, that each call sends it once, and who may read it.

import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { CAPTION_CHARS_MAX, sentFileId, sentNameOf, sentTypeOf } from "../../../src/core/sent-file.ts";
import type { Run } from "../../../src/core/shapes/run.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { getDelivery, insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import {
  contentOfFile,
  fileOfTranscript,
  filesOfRun,
  insertSentFile,
} from "../../../src/store/queries/channels/sent-files.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { callTool, toolsFor } from "../../../src/tools/catalog.ts";
import { openStoreOn, temporaryFolder } from "../../kit/engine/engine.ts";
import { telegramAccount } from "../../kit/platforms/people-channel.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { type App, agentSettings, type Choices, openApp } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

let apps: App[] = [];
afterEach(async () => {
  for (const app of apps) await app.close();
  apps = [];
});

/** Opens an app whose main session was used last in this chat. */
async function open(channel: string | undefined, choices: Choices = {}) {
  const workspace = join(temporaryFolder(), "work");
  mkdirSync(workspace);
  const agents = [agentSettings("main", { workspace }), agentSettings("research")];
  const app = await openApp({ channels: [telegramAccount("default")], agents, ...choices });
  apps.push(app);
  if (channel !== undefined) {
    const lastRoute = { channel, to: "7", accountId: "default" };
    await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { lastRoute }));
  }
  const put = (name: string, content: string | Buffer) => writeFileSync(join(workspace, name), content);
  const send = (path: string, more: object = {}) => app.call(MAIN, "send_file", { path, ...more });
  return { app, workspace, put, send };
}

const rows = ({ engine }: App) => engine.store.db.selectFrom("deliveries").selectAll().execute();
const files = ({ engine }: App) => engine.store.db.selectFrom("sent_files").selectAll().execute();

test("without a chat, the file is on the page only, and the model is told so", async () => {
  const { app, put, send } = await open(undefined);
  put("a.txt", "hello");
  const sent = await send("a.txt");
  expect(sent).toMatchObject({ status: "accepted", note: expect.stringContaining("page") });
  expect(sent).not.toHaveProperty("channel");
  expect(await rows(app)).toEqual([]);
  expect(await files(app)).toHaveLength(1);
});

test("FS3: people on a channel that can't send files get name and size, and the model is told so", async () => {
  const { app, put, send } = await open("imessage");
  put("a.txt", "hello");
  expect(await send("a.txt", { caption: "Look" })).toMatchObject({
    note: expect.stringContaining("imessage"),
  });
  const text = "File: a.txt (5 bytes). It is on the page of this conversation.\n\nLook";
  expect(await rows(app)).toMatchObject([{ text, file_id: null, state: "pending" }]);
});

test("FS1: a repeated call sends nothing, even if the file is gone and the tool is denied now", async () => {
  const { app, put, workspace } = await open("telegram");
  put("a.txt", "hello");
  const context = app.context(await app.session(MAIN));
  const call = { callId: "run:1:0", attempt: 1, name: "send_file", arguments: { path: "a.txt" } };
  const first = await callTool(context, call);
  rmSync(join(workspace, "a.txt"));
  await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { sendPolicy: "deny" }));
  const tools = { ...app.settings.tools, filter: { allow: [], deny: ["send_file"] } };
  const settings: Settings = { ...app.settings, channels: [], tools };
  expect(await callTool({ ...context, settings }, { ...call, attempt: 2 })).toEqual(first);
  expect(await rows(app)).toHaveLength(1);
  expect(await files(app)).toMatchObject([{ content: Buffer.from("hello").toString("base64") }]);
});

test("FS1: of two calls at once with the same id, one sends the file", async () => {
  const { app, put } = await open("telegram");
  put("a.txt", "hello");
  const context = app.context(await app.session(MAIN));
  const call = { callId: "run:1:0", attempt: 1, name: "send_file", arguments: { path: "a.txt" } };
  const [one, two] = await Promise.all([callTool(context, call), callTool(context, call)]);
  expect(one).toMatchObject({ status: "accepted" });
  expect(two).toEqual(one);
  expect(await rows(app)).toHaveLength(1);
});

test("no id of a file is redacted in a tool's result, also if digits precede a colon", async () => {
  const runId = "01a215bc-77fb-78a1-923e-49e299128175";
  const calls = [`${runId}:${runId}:0`, `${runId}:a2a:0`, `a2a-${runId}-0`, `operator:${runId}`];
  for (const callId of calls)
    for (const id of [sentFileId(callId, runId), sentFileId(callId, undefined)]) {
      const text = JSON.stringify({ status: "accepted", fileId: id });
      expect(await plainRedactor.whole(text)).toBe(text);
    }
});

test("a run's files are those of its own calls and of its program's, and no others of its session", async () => {
  const { app, put } = await open(undefined);
  const session = await app.session(MAIN);
  const run = { runId: "run-1", sessionId: session.sessionId, input: { text: "" } } as Run;
  const send = (path: string, callId: string, more: { run?: Run } = {}) => {
    put(path, "hello");
    const call = { callId, attempt: 1, name: "send_file", arguments: { path } };
    return callTool({ ...app.context(session), ...more }, call);
  };
  await send("own.txt", "run-1:message:0", { run });
  await send("program.txt", "operator:1", { run });
  await send("operator.txt", "operator:1");
  await send("other.txt", "run-10:message:0");
  expect(await files(app)).toHaveLength(4);
  const names = (await filesOfRun(app.engine.store.db, run)).map(({ name }) => name);
  expect(names.sort()).toEqual(["own.txt", "program.txt"]);
});

test("FS2: if the send policy forbids the chat, nothing is sent or kept", async () => {
  const { app, put, send } = await open("telegram", {
    session: { sendPolicy: { rules: [], default: "deny" } },
  });
  put("a.txt", "hello");
  expect(await send("a.txt")).toMatchObject({ status: "forbidden", code: "send_denied" });
  expect([await rows(app), await files(app)]).toEqual([[], []]);
});

test("SE1, I14: credentials in a text file, its name and its caption are redacted", async () => {
  const { app, put, send } = await open("telegram");
  put("notes.txt", `token ${KEY}\n`);
  const sent = await send("notes.txt", { caption: `see ${KEY}` });
  expect(sent).toMatchObject({ note: expect.stringContaining("redacted") });
  const [file] = await files(app);
  expect(Buffer.from(file?.content ?? "", "base64").toString()).not.toContain(KEY);
  expect(JSON.stringify([file, await rows(app)])).not.toContain(KEY);
});

test("files outside of the workspace, folders, empty and too large files, and long captions are refused", async () => {
  const { app, workspace, put, send } = await open("telegram", { tools: { sendFile: { maxBytes: 10 } } });
  writeFileSync(join(workspace, "..", "secret.txt"), "x");
  symlinkSync("../secret.txt", join(workspace, "link.txt"));
  mkdirSync(join(workspace, "folder"));
  put("empty.txt", "");
  put("large.txt", "12345678901");
  put("fits.txt", "1234567890");
  expect(await send("../secret.txt")).toMatchObject({ code: "path_outside" });
  expect(await send("link.txt")).toMatchObject({ code: "path_outside" });
  expect(await send("/etc/hostname")).toMatchObject({ code: "path_outside" });
  expect(await send("missing.txt")).toMatchObject({ code: "file_not_found" });
  expect(await send("folder")).toMatchObject({ code: "file_problem" });
  expect(await send("empty.txt")).toMatchObject({ code: "file_problem" });
  expect(await send("large.txt")).toMatchObject({
    code: "too_large",
    error: expect.stringContaining("tools.send_file.maxBytes"),
  });
  const caption = "x".repeat(CAPTION_CHARS_MAX + 1);
  expect(await send("fits.txt", { caption })).toMatchObject({ code: "too_large" });
  expect(await rows(app)).toEqual([]);
  expect(await send("fits.txt")).toMatchObject({ status: "accepted", bytes: 10 });
});

test("I13: a sub-agent does not have the tool, unless the settings list it", async () => {
  const { app } = await open("telegram");
  const child = { key: "agent:main:subagent:1", agentId: "main", kind: "other", spawnDepth: 1 } as const;
  const parent = { key: MAIN, agentId: "main", kind: "main", spawnDepth: 0 } as const;
  const chain = [{ ...child, spawnedBy: MAIN }, parent] as const;
  const names = (settings: Settings) => toolsFor({ settings, chain }).map(({ spec }) => spec.name);
  expect(names(app.settings)).not.toContain("send_file");
  const { tools } = app.settings;
  const listed = { ...app.settings, tools: { ...tools, subagents: { allow: ["send_file"], deny: [] } } };
  expect(names(listed)).toEqual(["send_file"]);
  const denied = { ...listed, tools: { ...listed.tools, filter: { allow: [], deny: ["send_file"] } } };
  expect(names(denied)).toEqual([]);
});

test.each(["sqlite", "postgres"] as const)(
  "SF1: on %s the oldest files of a conversation give way to new ones, except those that wait for delivery",
  async (kind) => {
    const store = await openStoreOn(kind, temporaryFolder());
    const add = (id: string, createdAt: number) =>
      store.transaction((tx) =>
        insertSentFile(tx, {
          ...{ id, sessionId: "s", name: id, mimeType: "text/plain", caption: "", content: "aGVsbG8=" },
          ...{ bytes: 40 * 1024 * 1024, createdAt },
        }),
      );
    await add("one", 1);
    await store.transaction((tx) =>
      insertDelivery(tx, {
        ...{ id: "one", sessionKey: MAIN, kind: "send", route: { channel: "telegram", to: "7" }, text: "" },
        ...{ state: "pending", createdAt: 1, fileId: "one" },
      }),
    );
    for (const [at, id] of ["two", "three", "four"].entries()) await add(id, at + 2);
    const kept = await store.db.selectFrom("sent_files").select("id").orderBy("id").execute();
    expect(kept.map(({ id }) => id)).toEqual(["four", "one", "three"]);
    expect(await fileOfTranscript(store.db, "four", "s")).toMatchObject({ name: "four", createdAt: 4 });
    expect(await fileOfTranscript(store.db, "four", "another")).toBeUndefined();
    expect(await contentOfFile(store.db, "four", { offset: 2, chars: 3 })).toBe("Vsb");
    expect(await getDelivery(store.db, "one")).toMatchObject({ fileId: "one" });
  },
);

test.each([
  ["a/b/Report 2.pdf", "Report 2.pdf"],
  ['x"; filename=evil\r\n.png', "x__ filename_evil__.png"],
  [".env", "env"],
  ["..", "file"],
  ["Übersicht 日本.csv", "Übersicht 日本.csv"],
])("people get the file %j as %j", (path, name) => {
  expect(sentNameOf(path)).toBe(name);
});

test("a long name keeps its ending, and the type of a picture comes from its bytes", () => {
  const name = sentNameOf(`${"x".repeat(300)}.tar`);
  expect(name.length).toBeLessThanOrEqual(120);
  expect(name.endsWith(".tar")).toBe(true);
  expect(sentTypeOf("a.txt", PNG)).toBe("image/png");
  expect(sentTypeOf("a.pdf", Buffer.from("x"))).toBe("application/pdf");
  expect(sentTypeOf("constructor", Buffer.from("x"))).toBe("application/octet-stream");
});
