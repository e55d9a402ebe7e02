// Commands about one session: how it is named, and how it is changed.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bestMatches } from "../../../src/cli/session-name.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { scriptedGateway } from "../../kit/scripted-gateway.ts";
import { call, makeHome, run, runJson, startGateway } from "../kit.ts";

/** Starts a gateway and creates conversations with these labels. Returns a function that runs a command. */
async function house(...labels: string[]) {
  const { home } = await makeHome();
  await startGateway(home);
  const keys: string[] = [];
  for (const label of labels) {
    const made = await runJson(home, [
      "call",
      "sessions.create",
      JSON.stringify({ label, idempotencyKey: label }),
    ]);
    keys.push(String(made.key));
  }
  const sessions = (...argv: string[]) => run(home, ["sessions", ...argv]);
  const shown = async (name: string) => (await runJson(home, ["sessions", "show", name])).key;
  return { home, keys, sessions, shown };
}

test("a session is named by its label, by a unique beginning of its label or key, and by its key", async () => {
  const { keys, sessions, shown } = await house("Daily report", "Weekly plan");
  const [daily = "", weekly = ""] = keys;
  const id = daily.slice(daily.lastIndexOf(":") + 1);
  for (const name of ["Daily report", "daily REPORT", "dail", daily, daily.slice(0, -3), id, id.slice(0, 9)])
    expect([name, await shown(name)]).toEqual([name, daily]);
  expect(await shown("Week")).toBe(weekly);
  const unknown = await sessions("show", "nothing like it");
  expect(unknown).toMatchObject({ code: 1, out: "", err: expect.stringContaining('"nothing like it"') });
});

test("an ambiguous name changes nothing, and the error lists the keys and labels that it could mean", async () => {
  const { home, keys, sessions } = await house("report for Ada", "report for Ben");
  const { code, err } = await sessions("rename", "report", "other");
  expect(code).toBe(1);
  expect(err).toContain('"report" names 2 sessions.');
  for (const [at, label] of ["report for Ada", "report for Ben"].entries())
    expect(err).toContain(`  ${keys[at]}  ${label}\n`);
  expect(await runJson(home, ["sessions", "show", "report"])).toMatchObject({
    error: { code: "label_ambiguous", details: { keys: expect.arrayContaining(keys) } },
  });
});

test("an existing key wins over another session's label", async () => {
  const { shown } = await house("main", "agent:research:main");
  expect(await shown("main")).toBe("agent:main:main");
  expect(await shown("agent:research:main")).toBe("agent:research:main");
});

test("an exact name wins over a beginning, and an active session over an archived one", () => {
  const row = (key: string, label: string, archivedAt?: number) => ({
    key,
    label,
    ...(archivedAt === undefined ? {} : { archivedAt }),
  });
  const rows = [
    row("agent:a:chat:1", "plan"),
    row("agent:a:chat:2", "planning"),
    row("agent:a:chat:3", "Plan", 5),
  ];
  const keys = (name: string) => bestMatches(rows, name).map(({ key }) => key.slice(-1));
  expect([keys("plan"), keys("PLAN"), keys("planni"), keys("pla"), keys("lan")]).toEqual([
    ["1"],
    ["1"],
    ["2"],
    ["1", "2"],
    [],
  ]);
});

test("the search for a name ends after a bounded number of pages, and a cut search chooses no session", async () => {
  const gateway = await scriptedGateway();
  const asked = run(homeWith({}), ["--url", gateway.url, "--token", "t", "sessions", "stop", "rare"]);
  const resolve = await gateway.request();
  resolve.refuse({ code: "NOT_FOUND", message: "no", details: { code: "session_not_found" } });
  for (let page = 0; page < 10; page += 1) {
    const request = await gateway.request();
    expect(request).toMatchObject({ method: "sessions.list", params: { search: "rare", limit: 200 } });
    const sessions = page === 4 ? [{ key: "agent:main:rare-one" }] : [];
    request.answer({ sessions, nextCursor: `after-${page}` });
  }
  const byLabel = await gateway.request();
  expect(byLabel).toMatchObject({ method: "sessions.resolve", params: { label: "rare" } });
  byLabel.refuse({ code: "NOT_FOUND", message: "no", details: { code: "session_not_found" } });
  const { code, err } = await asked;
  expect(code).toBe(1);
  expect(err).toContain('"rare" occurs in too many sessions.');
  expect(err).toContain("agent:main:rare-one");
});

test("send, chat, tool, may and cron take names, and send creates a session only for a name that nothing has", async () => {
  const { home, keys } = await house("Daily report");
  const [daily = ""] = keys;
  const sent = await run(home, ["send", "--session", "daily report", "--wait", "20", "say one"]);
  expect(sent).toEqual({ code: 0, out: "one\n", err: `Session: ${daily}\n` });
  const chat = await run(home, ["chat", "--session", "daily report"], { input: "say two\n" });
  expect(chat.out).toContain("two");
  const said = await run(home, ["sessions", "history", daily]);
  expect(said.out).toMatch(/agent: one.*agent: two/s);
  const tool = await run(home, ["tool", "session_status", "{}", "--as", "daily"]);
  expect(tool.out).toContain(daily);
  expect((await run(home, ["may", "daily", "main"])).out).toContain(`${daily} -> agent:main:main`);
  const job = await runJson(home, ["cron", "add", "hello", "--every", "1h", "--deliver", "daily report"]);
  expect(JSON.stringify(job)).toContain(daily);
  for (const [key, text] of [
    ["agent:main:diary", "say no"],
    ["agent:main:dia", "say three"],
  ] as const)
    await run(home, ["send", "--new", "--session", key, "--wait", "20", text]);
  expect((await run(home, ["sessions", "history", "agent:main:dia"])).out).toMatch(
    /^you: say three\nagent: three\n$/,
  );
});

test("sessions stop ends the running work, and says if there is none", async () => {
  const { home, keys, sessions } = await house("Long work");
  const [key = ""] = keys;
  await run(home, ["send", "--session", key, "wait 60 seconds"]);
  const state = async () => (await runJson(home, ["sessions", "show", key])).state;
  await expect.poll(state).toBe("running");
  expect(await sessions("stop", "long")).toMatchObject({
    code: 0,
    out: expect.stringContaining("Stopped 1 run"),
  });
  await expect.poll(state).toBe("idle");
  expect((await sessions("stop", "long")).out).toContain("has no work to stop");
});

test("sessions rename sets and clears the label, and needs exactly one of both", async () => {
  const { home, keys, sessions, shown } = await house("Old");
  const [key = ""] = keys;
  expect((await sessions("rename", "old", "New name")).out).toContain('is now called "New name"');
  expect(await shown("new")).toBe(key);
  expect((await sessions("rename", "new", "--clear")).code).toBe(0);
  expect(await runJson(home, ["sessions", "show", key])).not.toHaveProperty("label");
  for (const wrong of [[key], [key, "x", "--clear"]])
    expect(await sessions("rename", ...wrong)).toMatchObject({
      code: 2,
      err: expect.stringContaining("--clear"),
    });
});

test("sessions instructions shows, sets, reads and clears what the model is told", async () => {
  const { home, keys, sessions } = await house("Letters");
  const [key = ""] = keys;
  expect((await sessions("instructions", "letters")).out).toContain("has no instructions of its own");
  expect((await sessions("instructions", "letters", "Answer in French.")).out).toContain(
    "from its next run on",
  );
  expect((await sessions("instructions", "letters")).out).toBe("Answer in French.\n");
  const piped = await run(home, ["sessions", "instructions", key, "-"], { input: "Be brief.\nBe kind.\n" });
  expect(piped.code).toBe(0);
  expect((await sessions("instructions", key)).out).toBe("Be brief.\nBe kind.\n");
  for (const wrong of [["x", "--clear"], [" "]])
    expect(await sessions("instructions", key, ...wrong)).toMatchObject({
      code: 2,
      err: expect.stringContaining("--clear"),
    });
  expect((await sessions("instructions", key, "--clear")).code).toBe(0);
  expect(await runJson(home, ["sessions", "instructions", key])).toEqual({
    sessionKey: key,
    instructions: null,
  });
});

test("sessions archive hides an idle session until restore, and refuses a busy or main one", async () => {
  const { home, keys, sessions } = await house("Old news");
  const [key = ""] = keys;
  await run(home, ["send", "--session", key, "wait 60 seconds"]);
  expect(await sessions("archive", "old")).toMatchObject({
    code: 1,
    err: expect.stringContaining("unfinished"),
  });
  await sessions("stop", key);
  await expect.poll(async () => (await sessions("archive", "old")).code).toBe(0);
  expect((await sessions("list")).out).not.toContain(key);
  expect((await sessions("list", "--archived")).out).toContain(key);
  expect((await run(home, ["send", "--session", key, "hello"])).err).toContain("archived");
  expect((await sessions("restore", "old news")).code).toBe(0);
  expect((await sessions("list")).out).toContain(key);
  expect((await sessions("archive", "main")).err).toContain("main session");
});

test("sessions delete asks in a terminal, and needs --yes elsewhere", async () => {
  const { home, keys, sessions } = await house("Trash", "Rubbish");
  const [key = "", other = ""] = keys;
  expect(await sessions("delete", "trash")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  for (const [answer, code] of [
    ["n", 1],
    ["y", 0],
  ] as const) {
    const asking = call(home, ["sessions", "delete", "trash"], { isTTY: true });
    await asking.shows("Delete agent:main:chat:");
    asking.stdin.write(answer);
    expect(await asking.code).toBe(code);
    expect((await sessions("list")).out.includes(key)).toBe(code === 1);
  }
  // Nobody sees which session a beginning stands for.
  expect(await sessions("delete", "--yes", other.slice(0, -2))).toMatchObject({ code: 1 });
  expect(await sessions("delete", "--yes", "rubb")).toMatchObject({ code: 1 });
  expect(await sessions("reset", "rubb")).toMatchObject({ code: 1 });
  expect(await sessions("delete", "--yes", "rubbish")).toMatchObject({ code: 0, out: `Deleted ${other}.\n` });
  expect((await sessions("delete", "--yes", "main")).err).toContain("can't be deleted");
});

test("sessions export writes a private new file, and never replaces one", async () => {
  const { home, sessions } = await house("Notes");
  await run(home, ["send", "--session", "notes", "--wait", "20", "say marmalade"]);
  const file = join(home, "notes.md");
  const written = await sessions("export", "notes", "--format", "markdown", "--output", "notes.md");
  expect(written).toMatchObject({ code: 0, out: "Wrote 2 messages to notes.md.\n" });
  expect(readFileSync(file, "utf8")).toMatch(
    /## User, .*\n\nsay marmalade\n\n## Assistant, .*\n\nmarmalade\n/,
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const again = await sessions("export", "notes", "--output", "notes.md");
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("notes.md exists") });
});

test("sessions list says that the last run of a session failed", async () => {
  const nowhere = {
    ...{ api: "openai-completions", baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-none-0123456789" },
    ...{ maxRetries: 0, models: [{ id: "m" }] },
  };
  const list = [{ id: "main" }, { id: "broken", model: "nowhere/m" }];
  const { home } = await makeHome({ models: { providers: { nowhere } }, agents: { list } });
  await startGateway(home);
  await run(home, ["send", "--session", "agent:broken:main", "--wait", "20", "count the invoices"]);
  const { out } = await run(home, ["sessions", "list"]);
  expect(out).toMatch(/agent:broken:main +main +failed /);
  expect(out).toMatch(/agent:main:main +main +idle /);
});
