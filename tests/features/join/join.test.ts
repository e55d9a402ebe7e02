// `parley join` and `parley leave` with real files, session tokens, the protocol of hooks, and a real
// gateway. `node bench/woken.ts` tests them with the real coding agents.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { readSessionToken, sessionToken } from "../../../src/contract/session-token.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { makeHome, run, runJson, startGateway, TOKEN } from "../../cli/kit.ts";
import { INBOX_LOOK_MS, sendAs } from "../../gateway/clients/mcp.ts";
import { TOKEN as HOUSE_TOKEN, openHouse } from "../../gateway/kit.ts";
import { both, share, test } from "../../kit/deep.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { homeOf } from "../../kit/process/gateway-process.ts";
import { until } from "../../kit/until.ts";
import { worldWithoutTimers } from "../../kit/world.ts";
import { emptyUrl } from "../../store/transfer/moves.ts";
import { Window } from "./window.ts";

const PROGRAMS = ["claude-code", "codex", "opencode", "gemini", "qwen"] as const;

function project(): string {
  return mkdtempSync(join(tmpdir(), "parley-project-"));
}

function recordOf(home: string, handle: string): { tokens: string[]; series: string } {
  const text = readFileSync(join(home, ".parley", "joined", `${handle}.json`), "utf8");
  return JSON.parse(text) as { tokens: string[]; series: string };
}

test.each(PROGRAMS)("%s: leave removes exactly the text that join wrote", async (program) => {
  const { home } = await makeHome();
  const folder = project();
  const joined = await run(home, ["join", program, "--yes"], { folder });
  expect(joined).toMatchObject({ code: 0 });
  expect(joined.out).toContain("+ ");
  const again = await run(home, ["join", program, "--yes"], { folder });
  expect(again.out).toContain("needs no change");
  expect((await run(home, ["leave", program, "--yes"], { folder })).code).toBe(0);
  expect(
    ["", ".mcp.json", ".claude", ".codex", ".gemini", ".opencode", ".qwen", "opencode.json"].filter((name) =>
      existsSync(join(folder, name)),
    ),
  ).toEqual([""]);
  expect((await run(home, ["leave", program, "--yes"], { folder })).code).toBe(1);
});

const OWN = `{
  // Ours, with a comment that stays.
  "model": "some-model",   "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
  "permissions": { "allow": ["Read"] },
}
`;

test("all other text in a file stays byte for byte the same, even if it was edited before leave", async () => {
  const { home } = await makeHome();
  const folder = project();
  const file = join(folder, ".claude", "settings.local.json");
  mkdirSync(join(folder, ".claude"));
  writeFileSync(file, OWN);
  await run(home, ["join", "claude-code", "--yes"], { folder });
  const joined = readFileSync(file, "utf8");
  expect(joined).toContain('"command": "true"');
  expect(joined).toContain("asyncRewake");
  writeFileSync(file, joined.replace('"some-model"', '"another-model"'));
  expect((await run(home, ["leave", "claude-code", "--yes"], { folder })).code).toBe(0);
  const left = readFileSync(file, "utf8");
  expect(left).toContain('"another-model"');
  expect(left).toContain("// Ours, with a comment that stays.");
  expect(left).not.toMatch(/parley|asyncRewake/);
  expect(existsSync(join(folder, ".mcp.json"))).toBe(false);

  writeFileSync(file, OWN);
  await run(home, ["join", "claude-code", "--yes"], { folder });
  await run(home, ["leave", "claude-code", "--yes"], { folder });
  expect(readFileSync(file, "utf8")).toBe(OWN);
});

test("leave removes the lists and objects that join made, also from a file that was edited since", async () => {
  const { home } = await makeHome();
  const folder = project();
  const file = join(folder, ".claude", "settings.local.json");
  mkdirSync(join(folder, ".claude"));
  // The program writes the whole file again when a person allows something.
  const rewrite = (from: string, to: object) => {
    const tree = JSON.parse(readFileSync(join(folder, from), "utf8"));
    writeFileSync(join(folder, from), JSON.stringify({ ...tree, ...to }, null, 2));
  };
  const own = { model: "some-model", permissions: { deny: [] } };
  writeFileSync(file, JSON.stringify(own));
  await run(home, ["join", "claude-code", "--yes"], { folder });
  rewrite(".claude/settings.local.json", { model: "another-model" });
  rewrite(".mcp.json", {});
  expect((await run(home, ["leave", "claude-code", "--yes"], { folder })).code).toBe(0);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...own, model: "another-model" });
  expect(existsSync(join(folder, ".mcp.json"))).toBe(false);
});

test("if an entry was edited after join, leave keeps and reports it", async () => {
  const { home } = await makeHome();
  const folder = project();
  const file = join(folder, ".mcp.json");
  await run(home, ["join", "claude-code", "--yes"], { folder });
  writeFileSync(file, readFileSync(file, "utf8").replace('"stdio"', '"sse"'));
  const left = await run(home, ["leave", "claude-code", "--yes"], { folder });
  expect(left).toMatchObject({ code: 1 });
  expect(left.err).toContain("was changed since. Remove it by hand.");
  expect(readFileSync(file, "utf8")).toContain('"sse"');
});

test("a file that cannot be parsed is not changed, and no other file is written", async () => {
  const { home } = await makeHome();
  const folder = project();
  mkdirSync(join(folder, ".claude"));
  writeFileSync(join(folder, ".claude", "settings.local.json"), "{ broken");
  const joined = await run(home, ["join", "claude-code", "--yes"], { folder });
  expect(joined).toMatchObject({ code: 1 });
  expect(joined.err).toContain("settings.local.json is not valid");
  expect(existsSync(join(folder, ".mcp.json"))).toBe(false);
});

/** Makes a project folder with a configuration of Codex. */
function codexProject(text: string): { folder: string; file: string } {
  const folder = project();
  const file = join(folder, ".codex", "config.toml");
  mkdirSync(join(folder, ".codex"));
  writeFileSync(file, text);
  return { folder, file };
}

test("join appends one table to an existing Codex configuration, and leave removes only that table", async () => {
  const { home } = await makeHome();
  for (const own of [
    'model = "some-model" # ours\n[mcp_servers.other]\ncommand = "x"',
    "",
    "# only words\n",
  ]) {
    const { folder, file } = codexProject(own);
    expect(await run(home, ["join", "codex", "--yes"], { folder })).toMatchObject({ code: 0 });
    const joined = readFileSync(file, "utf8");
    expect(joined.startsWith(own)).toBe(true);
    expect(joined.slice(own.length)).toMatch(/^\n*\[mcp_servers\.parley\]\ncommand = /);
    await run(home, ["leave", "codex", "--yes"], { folder });
    expect(readFileSync(file, "utf8")).toBe(own);
    await run(home, ["join", "codex", "--yes"], { folder });
    writeFileSync(file, `${readFileSync(file, "utf8")}\n[later]\nx = 1\n`);
    expect(await run(home, ["leave", "codex", "--yes"], { folder })).toMatchObject({ code: 0 });
    const left = readFileSync(file, "utf8");
    expect(left).toContain(own);
    expect(left).toContain("[later]\nx = 1\n");
    expect(left).not.toContain("parley");
  }
});

test.each([
  '[mcp_servers.parley]\ncommand = "mine"\n',
  '[mcp_servers."parley"]\ncommand = "mine"\n',
  'mcp_servers.parley.command = "mine"\n',
  'mcp_servers = { other = { command = "x" } }\n',
  '[mcp_servers]\nparley = { command = "mine" }\n',
])("a Codex configuration that may already name this server is not changed: %s", async (own) => {
  const { home } = await makeHome();
  const { folder, file } = codexProject(own);
  const joined = await run(home, ["join", "codex", "--yes"], { folder });
  expect(joined).toMatchObject({ code: 1 });
  expect(joined.err).toContain("default_tools_approval_mode");
  expect(readFileSync(file, "utf8")).toBe(own);
  expect(existsSync(join(folder, ".codex", "hooks.json"))).toBe(false);
});

test("leave keeps and reports an edited table of Codex", async () => {
  const { home } = await makeHome();
  const { folder, file } = codexProject('model = "some-model"\n');
  await run(home, ["join", "codex", "--yes"], { folder });
  const edited = readFileSync(file, "utf8").replace('"approve"', '"prompt"');
  writeFileSync(file, edited);
  const left = await run(home, ["leave", "codex", "--yes"], { folder });
  expect(left).toMatchObject({ code: 1 });
  expect(left.err).toContain("mcp_servers.parley was changed since. Remove it by hand.");
  expect(readFileSync(file, "utf8")).toBe(edited);
});

test("without a terminal and without --yes, join changes nothing", async () => {
  const { home } = await makeHome();
  const folder = project();
  const joined = await run(home, ["join", "qwen"], { folder });
  expect(joined).toMatchObject({ code: 1 });
  expect(joined.err).toContain("--yes");
  expect(existsSync(join(folder, ".qwen"))).toBe(false);
});

test("a copy in npx's cache is not named in the configuration of a program", async () => {
  const { home } = await makeHome();
  const folder = project();
  const script = "/var/cache/_npx/1234/node_modules/parley-gateway/bin/parley.js";
  const machine = { launcher: { node: "/n/node", script } };
  const joined = await run(home, ["join", "qwen", "--yes"], { folder, machine });
  expect(joined).toMatchObject({ code: 1 });
  expect(joined.err).toContain("npm install --global parley-gateway. Then: npx parley-gateway join qwen");
  expect(existsSync(join(folder, ".qwen"))).toBe(false);
});

test("folders with the same name get different session names, and two folders cannot share a session name", async () => {
  const { home } = await makeHome();
  const [one, two] = [project(), project()].map((folder) => join(folder, "shop"));
  if (one === undefined || two === undefined) throw new Error("no folders");
  for (const folder of [one, two]) mkdirSync(folder);
  const first = await run(home, ["--json", "join", "qwen", "--yes"], { folder: one });
  const second = await run(home, ["--json", "join", "qwen", "--yes"], { folder: two });
  const handle = (text: string): string => String((JSON.parse(text) as { handle: unknown }).handle);
  expect(handle(first.out)).not.toBe(handle(second.out));
  await run(home, ["join", "gemini", "--yes", "--session", "reviewer"], { folder: one });
  const taken = await run(home, ["join", "gemini", "--yes", "--session", "reviewer"], { folder: two });
  expect(taken.err).toContain("already uses the name reviewer");
  // Refused, because "reviewer.2" is the name of this session's second window.
  const another = await run(home, ["join", "gemini", "--yes", "--session", "reviewer.2"], { folder: two });
  expect(another.err).toContain("already uses the name reviewer.2");
});

test("the token of a session is valid for MCP requests of that session only", async () => {
  const { home, port } = await makeHome();
  const gateway = await startGateway(home);
  const folder = project();
  await run(home, ["join", "claude-code", "--yes", "--session", "writer"], { folder });
  const token = recordOf(home, "writer").tokens[1] ?? "";
  const ask = async (query: string, bearer: string): Promise<string> => {
    const params = { name: "sessions_inbox", arguments: {} };
    const response = await fetch(`http://127.0.0.1:${port}/mcp${query}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${bearer}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    return response.text();
  };
  expect(await ask("", token)).toContain("agent:main:mcp:writer.2");
  expect(await ask("?handle=other", token)).toContain("valid for session agent:main:mcp:writer.2 only");
  expect(await ask("?session=agent:main:main", token)).toContain("only");
  expect(await ask("", `${token.slice(0, -3)}abc`)).toContain("not valid");
  expect(await run(home, ["--token", token, "sessions"])).toMatchObject({ code: 1 });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const statusOf = async (path: string, more: RequestInit = {}): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...more })).status;
  expect(await statusOf("/v1/models")).toBe(403);
  expect(await statusOf("/metrics")).toBe(403);
  const call = JSON.stringify({ tool: "sessions_list", args: {} });
  expect(await statusOf("/tools/invoke", { method: "POST", body: call })).toBe(403);
  await gateway.stop();
  const grant = { sessionKey: "agent:main:mcp:writer.2", series: "one", until: Number.MAX_SAFE_INTEGER };
  const other = sessionToken("a-token-of-another-gateway", grant);
  const again = await startGateway(home);
  expect(await ask("", other)).toContain("not valid");
  await again.stop();
});

/** Reads the inbox of a window with this token, and returns the answer as text. */
async function inboxWith(port: number, token: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    },
    body: JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
      params: { name: "sessions_inbox", arguments: {} },
    }),
  });
  return response.text();
}

test("leave revokes the tokens of all windows, even after a restart, and joining again makes new ones", async () => {
  const { home, port } = await makeHome();
  const gateway = await startGateway(home);
  const folder = project();
  const joinAs = () => run(home, ["join", "qwen", "--yes", "--session", "writer"], { folder });
  await joinAs();
  const [one = "", two = ""] = recordOf(home, "writer").tokens;
  expect(await inboxWith(port, two)).toContain("agent:main:mcp:writer.2");
  const left = await run(home, ["--json", "leave", "qwen", "--yes"], { folder });
  expect(JSON.parse(left.out)).toMatchObject({ ok: true, revoked: true });
  for (const token of [one, two]) expect(await inboxWith(port, token)).toContain("was revoked");
  await gateway.stop();
  await startGateway(home);
  expect(await inboxWith(port, one)).toContain("was revoked");
  await joinAs();
  expect(await inboxWith(port, recordOf(home, "writer").tokens[0] ?? "")).toContain("agent:main:mcp:writer");
});

test("if no gateway runs, leave prints the command that revokes the tokens later", async () => {
  const { home, port } = await makeHome();
  const folder = project();
  await run(home, ["join", "qwen", "--yes", "--session", "writer"], { folder });
  const { tokens, series } = recordOf(home, "writer");
  const left = await run(home, ["leave", "qwen", "--yes"], { folder });
  expect(left).toMatchObject({ code: 0 });
  expect(left.err).toContain(`npx parley-gateway call session.token.revoke '{"series":"${series}"}'`);
  await startGateway(home);
  expect(await inboxWith(port, tokens[0] ?? "")).toContain("agent:main:mcp:writer");
  await run(home, ["call", "session.token.revoke", JSON.stringify({ series })]);
  expect(await inboxWith(port, tokens[0] ?? "")).toContain("was revoked");
});

test("the gateway refuses an expired token of a window; a window that opens shortly before the expiry renews the token", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  const folder = project();
  await run(home, ["join", "qwen", "--yes", "--session", "writer"], { folder });
  const sessionKey = "agent:main:mcp:writer";
  const { series } = recordOf(home, "writer");
  const tokenUntil = (until: number) => sessionToken(TOKEN, { sessionKey, series, until });
  expect(await inboxWith(port, tokenUntil(Date.now() - 1))).toContain("has expired");
  const soon = tokenUntil(Date.now() + 86_400_000);
  const file = join(home, ".parley", "joined", "writer.json");
  writeFileSync(file, JSON.stringify({ ...recordOf(home, "writer"), tokens: [soon] }));
  const window = new Window(home);
  window.startServer("writer");
  await expect.poll(() => recordOf(home, "writer").tokens.length).toBe(8);
  const [renewed = ""] = recordOf(home, "writer").tokens;
  const claim = readSessionToken(renewed);
  expect(claim?.grant.series).toBe(series);
  expect(claim?.grant.until).toBeGreaterThan(Date.now() + 80 * 86_400_000);
  expect(await inboxWith(port, renewed)).toContain(sessionKey);
  // While a window stays open, its hooks also renew the tokens.
  writeFileSync(file, JSON.stringify({ ...recordOf(home, "writer"), tokens: [soon] }));
  await window.hook("qwen", "writer", "Stop");
  expect(recordOf(home, "writer").tokens).toHaveLength(8);
});

test("a person who waits for a window's reply is told that it answers elsewhere, once it has the message", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const folder = project();
  await run(home, ["join", "qwen", "--yes", "--session", "writer"], { folder });
  const window = new Window(home);
  window.startServer("writer");
  const key = "agent:main:mcp:writer";
  await expect.poll(async () => (await run(home, ["sessions"])).out).toContain(key);
  const sent = run(home, ["send", "--session", "writer", "--wait", "60", "which port?"]);
  await expect.poll(() => window.hook("qwen", "writer", "UserPromptSubmit")).toContain("which port?");
  const { code, out } = await sent;
  expect([code, out]).toEqual([0, expect.stringContaining("answers in its own window")]);
});

const HOOKS = [
  [
    "claude-code",
    "Stop",
    /^New messages[\s\S]*from session agent:research:main, not from your user\]\n\| which port\?[\s\S]*<code 2>$/,
  ],
  ["gemini", "AfterAgent", /^\{"decision":"block","reason":"New messages[\s\S]*which port\?[\s\S]*<code 0>$/],
  [
    "qwen",
    "SessionStart",
    /^\{"hookSpecificOutput":\{"hookEventName":"SessionStart"[\s\S]*which port\?[\s\S]*<code 0>$/,
  ],
] as const;

both.each(share(HOOKS.slice(0, 1), HOOKS.slice(1)))(
  "the hook of %s delivers each message once, to the right session",
  async (program, event, shown) => {
    const { home } = await makeHome();
    const gateway = await startGateway(home);
    await run(home, ["join", program, "--yes", "--session", "writer"], { folder: project() });
    const [one, two] = [new Window(home), new Window(home)];
    one.startServer("writer");
    const isOpen = (number: number): boolean =>
      existsSync(join(home, ".parley", "joined", "writer", `${number}.json`));
    await expect.poll(() => isOpen(1)).toBe(true);
    two.startServer("writer");
    await expect.poll(() => isOpen(2)).toBe(true);
    // The first request creates the session.
    expect(await one.hook(program, "writer", event)).toBe("<code 0>");
    expect(await two.hook(program, "writer", event)).toBe("<code 0>");
    const sessionKey = "writer.2";
    const send = async (message: string): Promise<void> => {
      const args = JSON.stringify({ sessionKey, message, timeoutSeconds: 0 });
      await runJson(home, ["tool", "sessions_send", args, "--as", "agent:research:main"]);
    };
    await send("which port?");
    expect(await one.hook(program, "writer", event)).toBe("<code 0>");
    expect(await two.hook(program, "writer", event)).toMatch(shown);
    expect(await two.hook(program, "writer", event)).toBe("<code 0>");
    // After a reset, the last message that the hook delivered is no longer in the inbox.
    await run(home, ["sessions", "reset", sessionKey]);
    await send("which port? again");
    expect(await two.hook(program, "writer", event)).toMatch(shown);
    expect(await two.hook(program, "writer", event)).toBe("<code 0>");
    await gateway.stop();
    expect(await two.hook(program, "writer", event)).toBe("<code 0>");
    expect(await two.hook(program, "unknown", event)).toBe("<code 0>");
  },
);

test("the background hook of an idle agent waits at one gateway, and returns a message that another gateway accepted", async () => {
  const url = await emptyUrl();
  const { world, skipped } = worldWithoutTimers(INBOX_LOOK_MS);
  const choices = { tools: { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } } };
  const waiting = await openHouse({ choices, world, disk: await openPostgres({ url, world: quietWorld() }) });
  const accepting = await openHouse({ choices, disk: await openPostgres({ url, world: quietWorld() }) });
  const home = homeOf(waiting.port, HOUSE_TOKEN);
  await run(home, ["join", "claude-code", "--yes", "--session", "writer"], { folder: project() });
  const window = new Window(home, { CLAUDE_CODE_ENTRYPOINT: "cli" });
  window.startServer("writer");
  const before = skipped();
  const told = window.hook("claude-code", "writer", "Stop");
  await until(async () => (await getSession(waiting.store.db, "agent:main:mcp:writer")) !== undefined);
  await until(() => skipped() > before);
  await sendAs(accepting, "agent:research:main", "agent:main:mcp:writer", "which port?");
  expect(await told).toMatch(
    /from session agent:research:main, not from your user\]\n\| which port\?[\s\S]*<code 2>$/,
  );
});

test("the hooks deliver every message that waited before the first delivery, the oldest first", async () => {
  const choices = { tools: { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } } };
  const house = await openHouse({ choices });
  const home = homeOf(house.port, HOUSE_TOKEN);
  await run(home, ["join", "gemini", "--yes", "--session", "writer"], { folder: project() });
  const window = new Window(home);
  window.startServer("writer");
  const file = join(home, ".parley", "joined", "writer", "1.json");
  await expect.poll(() => existsSync(file)).toBe(true);
  expect(await window.hook("gemini", "writer", "AfterAgent")).toBe("<code 0>");
  // More than an answer of the gateway may contain.
  const sent = Array.from({ length: 45 }, (_, at) => `text-${at + 10}`);
  for (const text of sent)
    await sendAs(house, "agent:research:main", "agent:main:mcp:writer", text + "x".repeat(3_900));
  const heard: string[] = [];
  for (let output = ""; output !== "<code 0>"; ) {
    output = await window.hook("gemini", "writer", "AfterAgent");
    heard.push(...(output.match(/text-\d+/g) ?? []));
  }
  expect(heard).toEqual(sent);
});

test("a program that left and joins again under its name gets the messages that came meanwhile, and no others", async () => {
  const choices = { tools: { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } } };
  const house = await openHouse({ choices });
  const home = homeOf(house.port, HOUSE_TOKEN);
  const folder = project();
  const heard: string[] = [];
  for (const text of ["one", "two"]) {
    await run(home, ["join", "gemini", "--yes", "--session", "writer"], { folder });
    const window = new Window(home);
    window.startServer("writer");
    const file = join(home, ".parley", "joined", "writer", "1.json");
    await expect.poll(() => existsSync(file)).toBe(true);
    const send = () => sendAs(house, "agent:research:main", "agent:main:mcp:writer", `text-${text}`);
    // The window's server opens the session.
    await expect.poll(async () => (await send()).status).toBe("accepted");
    const output = await window.hook("gemini", "writer", "AfterAgent");
    heard.push((output.match(/text-\w+/g) ?? []).join());
    expect((await run(home, ["leave", "gemini", "--yes"], { folder })).code).toBe(0);
  }
  expect(heard).toEqual(["text-one", "text-two"]);
});
