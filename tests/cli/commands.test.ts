import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { homeWith } from "../kit/process/gateway-process.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { scriptedGateway } from "../kit/scripted-gateway.ts";
import { call, configFile, makeHome, run, runJson, startGateway, TOKEN } from "./kit.ts";

const RESEARCH = "agent:research:main";

async function house(more: Record<string, unknown> = {}) {
  const { home, port } = await makeHome(more);
  return { home, port, gateway: await startGateway(home) };
}

test("parley send prints the run id, and with --wait the answer", async () => {
  const { home } = await house();
  const accepted = await runJson(home, ["send", "--session", RESEARCH, "say one"]);
  expect(accepted).toMatchObject({ ok: true, status: "accepted", runId: expect.any(String) });
  const waited = await run(home, ["send", "--session", RESEARCH, "--wait", "20", "say two"]);
  expect(waited).toEqual({ code: 0, out: "two\n", err: "" });
  expect(await runJson(home, ["send", "--session", RESEARCH, "--wait", "20", "say three"])).toMatchObject({
    ok: true,
    status: "ok",
    reply: "three",
  });
});

test("if a wait times out, the exit code is 1 and a warning says not to send the message again", async () => {
  const { home } = await house();
  const { code, out, err } = await run(home, [
    "send",
    "--session",
    "main",
    "--wait",
    "0.2",
    "wait 5 seconds",
  ]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("Do not send it again");
});

test("a message to a session of a missing agent is refused and creates no session", async () => {
  const { home } = await house();
  const before = await runJson(home, ["sessions"]);
  const { code, err } = await run(home, ["send", "--session", "agent:reserch:work", "hello"]);
  expect(code).toBe(1);
  expect(err).toContain("reserch");
  expect((await runJson(home, ["sessions"])).count).toBe(before.count);
});

test("sessions history shows messages with their authors; a session can be shown and reset", async () => {
  const { home } = await house();
  await run(home, ["send", "--session", "main", "--wait", "20", "ask research: say \x1b[31mfour"]);
  const { out } = await run(home, ["sessions", "history", "main"]);
  expect(out).toContain("you: ask research: say \\x1b[31mfour");
  expect(out).toContain("· sessions_send");
  expect(out).not.toContain("\x1b");
  expect((await run(home, ["sessions", "history", RESEARCH])).out).toContain("« from agent:main:main:");
  const before = await runJson(home, ["sessions", "show", RESEARCH]);
  expect(before).toMatchObject({ key: RESEARCH, agentId: "research" });
  expect((await run(home, ["sessions", "show", String(before.sessionId)])).out).toContain(RESEARCH);
  expect((await run(home, ["sessions", "reset", RESEARCH])).code).toBe(0);
  const after = await runJson(home, ["sessions", "show", RESEARCH]);
  expect(after.sessionId).not.toBe(before.sessionId);
  expect((await run(home, ["sessions", "history", RESEARCH])).out).toContain("No messages yet");
});

test("history is shown in pages, and each page prints the command for the previous one", async () => {
  const { home } = await house();
  await run(home, ["send", "--session", "main", "--wait", "20", "say five"]);
  const { out, err } = await run(home, ["sessions", "history", "main", "--limit", "1"]);
  expect(out).toBe("agent: five\n");
  const before = /--before (\S+)/.exec(err)?.[1] ?? "";
  expect((await run(home, ["sessions", "history", "main", "--before", before])).out).toBe("you: say five\n");
});

test("`parley tool` calls a tool with a session's rights; if the tool refuses, the exit code is 1", async () => {
  const { home } = await house({ tools: {} });
  const listed = await run(home, ["tool", "sessions_list", '{"limit":5}', "--as", RESEARCH]);
  expect(JSON.parse(listed.out)).toMatchObject({
    count: 1,
    sessions: [{ key: "main", agentId: "research" }],
  });
  expect(listed.code).toBe(0);
  const refused = await run(home, ["tool", "sessions_history", `{"sessionKey":"${RESEARCH}"}`]);
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.out)).toMatchObject({ status: "forbidden", code: "not_visible" });
});

test("`parley call` calls any method of the protocol, and prints the method's error unchanged", async () => {
  const { home } = await house();
  expect(await runJson(home, ["call", "health"])).toMatchObject({ ok: true, store: { ok: true } });
  const wrong = await run(home, ["call", "chat.send", '{"sessionKey":"main"}']);
  expect(wrong).toMatchObject({ code: 1, out: "" });
  expect(wrong.err).toContain("message");
});

test("parley deliveries lists a sent announcement, and refuses to retry or dismiss it", async () => {
  const { home } = await house();
  expect((await run(home, ["deliveries"])).out).toBe("The outbox is empty.\n");
  const sent = { to: RESEARCH, message: "the build is green", idempotencyKey: "one" };
  await run(home, ["call", "send", JSON.stringify(sent)]);
  const { deliveries } = (await runJson(home, ["deliveries"])) as { deliveries: { id: string }[] };
  expect(deliveries).toHaveLength(1);
  expect((await run(home, ["deliveries", "list"])).out).toContain("the build is green");
  const retried = await run(home, ["deliveries", "retry", deliveries[0]?.id ?? ""]);
  expect(retried).toMatchObject({ code: 1, err: expect.stringContaining("only a failed delivery") });
  expect((await run(home, ["deliveries", "dismiss", "nothing"])).err).toMatch(
    /there is no delivery.*\n?.*npx parley-gateway deliveries/,
  );
});

test("the token is read from PARLEY_TOKEN, from --token, or from the file that the gateway generated", async () => {
  const port = await freePort();
  const home = homeWith({ gateway: { port } });
  await startGateway(home);
  expect((await run(home, ["agents"])).code).toBe(0);
  const token = readFileSync(join(home, ".parley", "state", "gateway-token"), "utf8").trim();
  const elsewhere = temporaryFolder();
  const url = `127.0.0.1:${port}`;
  expect((await run(elsewhere, ["--url", url, "agents"])).code).toBe(1);
  expect((await run(elsewhere, ["--url", url, "--token", token, "agents"])).code).toBe(0);
  expect((await run(elsewhere, ["--url", url, "agents"], { env: { PARLEY_TOKEN: token } })).code).toBe(0);
  const wrong = await run(elsewhere, ["--url", url, "--token", "wrong", "agents"]);
  expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("token") });
});

test("config check summarizes the configuration, or reports every problem", async () => {
  const { home } = await makeHome();
  const good = await run(home, ["config", "check"]);
  expect(good.code).toBe(0);
  expect(good.out).toContain("no problem found");
  expect(await runJson(home, ["config", "check"])).toMatchObject({ ok: true, visibility: "all" });
  const wrong = await makeHome({ tools: { sessions: { visibility: "everything" } }, sesion: {} });
  const bad = await run(wrong.home, ["config", "check"]);
  expect(bad.code).toBe(1);
  expect(bad.err).toContain("tools.sessions.visibility");
  expect(bad.err).toContain("sesion");
});

test("config schema prints the published schema, which allows $schema, and does not overwrite another file", async () => {
  const { home } = await makeHome();
  const published = readFileSync(join(import.meta.dirname, "../../docs/config.schema.json"), "utf8");
  expect(await run(home, ["config", "schema"])).toEqual({ code: 0, out: published, err: "" });
  expect(await runJson(home, ["config", "schema"])).toEqual(JSON.parse(published));
  const file = join(home, "parley.schema.json");
  expect((await run(home, ["config", "schema", "--write", file])).out).toContain(`$schema: "${file}"`);
  expect((await run(home, ["config", "schema", "--write", file])).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(published);
  expect(await run(home, ["config", "schema", "--write", configFile(home)])).toMatchObject({ code: 1 });
  const pointing = await makeHome({ $schema: file });
  expect((await run(pointing.home, ["config", "check"])).code).toBe(0);
});

test("doctor finds no problems in a running gateway, and lists warnings", async () => {
  const { home } = await house();
  const { code, out } = await run(home, ["doctor"]);
  expect(code).toBe(0);
  for (const words of [
    "Node ",
    "belongs to a gateway",
    "offline/rehearsal",
    "outside a sandbox",
    "No problems",
  ]) {
    expect(out).toContain(words);
  }
});

test("doctor without a gateway changes nothing and says how to start one", async () => {
  const { home } = await makeHome();
  const { code, out } = await run(home, ["doctor"]);
  expect(code).toBe(0);
  expect(out).toContain("npx parley-gateway gateway");
  expect(existsSync(join(home, ".parley", "state"))).toBe(false);
});

test("doctor finds a used port, open file permissions and an invalid configuration, each with a solution", async () => {
  const { home, port } = await house();
  const other = homeWith({ gateway: { port, auth: { token: "another-token-that-is-long" } } });
  chmodSync(configFile(other), 0o644);
  const taken = await run(other, ["doctor"]);
  expect(taken.code).toBe(1);
  expect(taken.out).toContain("token");
  expect(taken.out).toMatch(/mode 644|0644|readable/i);
  chmodSync(join(home, ".parley", "state"), 0o755);
  expect((await run(home, ["doctor"])).out).toContain(`chmod 700 ${join(home, ".parley", "state")}`);
  const { home: wrong } = await makeHome({ nonsense: 1 });
  expect(await runJson(wrong, ["doctor"])).toMatchObject({
    ok: false,
    findings: [
      { name: "node" },
      { name: "config", level: "problem", text: expect.stringContaining("nonsense") },
    ],
  });
});

test("doctor warns if several people share one main session", async () => {
  const { home, gateway } = await house();
  await gateway.stop(1000);
  const { openSqlite } = await import("../../src/store/sqlite/sqlite.ts");
  const { appendEntry } = await import("../../src/store/queries/transcripts/append.ts");
  const { getSession } = await import("../../src/store/queries/sessions/sessions.ts");
  const { quietWorld } = await import("../kit/engine/engine.ts");
  const store = await openSqlite({
    dir: join(home, ".parley", "state"),
    durability: "full",
    log: quietWorld().log,
  });
  const session = await getSession(store.db, "agent:main:main");
  for (const senderName of ["Ada", "Ben"]) {
    const entry = {
      id: senderName,
      role: "user" as const,
      content: [{ type: "text" as const, text: "hello" }],
      timestamp: 1,
      senderName,
    };
    const { key: sessionKey = "", sessionId = "" } = session ?? {};
    await store.transaction((tx) => appendEntry(tx, { sessionKey, sessionId, entry }, plainRedactor));
  }
  await store.close();
  await startGateway(home);
  expect((await run(home, ["doctor"])).out).toContain("Ada, Ben share the session agent:main:main");
});

test("a demo that is stopped exits at once, and leaves no file", async () => {
  const home = temporaryFolder();
  const demo = call(home, ["demo"]);
  await demo.shows("you → main");
  demo.interrupt();
  expect(await demo.code).toBe(1);
  expect(demo.err()).toBe("The demo was stopped.\n");
  expect(demo.out()).not.toContain("✗");
});

test("the generated token file is readable only by its owner", async () => {
  const home = homeWith({ gateway: { port: 0 } });
  await startGateway(home);
  expect(statSync(join(home, ".parley", "state", "gateway-token")).mode & 0o077).toBe(0);
  expect(TOKEN.length).toBeGreaterThan(8);
});

test("a list of sessions is complete even if the gateway returns short pages", async () => {
  const gateway = await scriptedGateway();
  const row = { key: "agent:main:rare", sessionKind: "chat", state: "idle", queuedRuns: 0, updatedAt: 1 };
  const asked = run(homeWith({}), ["--url", gateway.url, "--token", "t", "sessions", "--search", "ra"]);
  (await gateway.request()).answer({ sessions: [], nextCursor: "on" });
  const second = await gateway.request();
  expect(second.params).toMatchObject({ search: "ra", cursor: "on" });
  second.answer({ sessions: [{ ...row, totalTokens: 0 }] });
  const { out, code } = await asked;
  expect([code, out]).toEqual([0, expect.stringContaining("agent:main:rare")]);
});
