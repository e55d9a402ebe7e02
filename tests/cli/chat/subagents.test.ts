// Sub-agents on the command line: in the chat, in the tree of sessions, and in the report of the doctor.

import { join } from "node:path";
import { expect, test } from "vitest";
import { treeOf } from "../../../src/cli/commands/sessions/tree.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { call, makeHome, run, runJson, startGateway } from "../kit.ts";

const MAIN = "agent:main:main";

async function house(more: Record<string, unknown> = {}) {
  const { home } = await makeHome(more);
  return { home, gateway: await startGateway(home) };
}

function times(text: string, wanted: RegExp | string): number {
  return text.split(wanted).length - 1;
}

test("chat shows the start of each sub-agent and each result once, whether it arrives before or after the agent's text", async () => {
  const { home } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("spawn 2 jobs: say part {n} is done\n");
  await chat.shows("    part 1 is done");
  await chat.shows("    part 2 is done");
  await chat.shows("agent: Started 2 sub-agents.");
  chat.stdin.end("say over\n");
  expect(await chat.code).toBe(0);
  const out = chat.out();
  expect(out).toContain("agent: over");
  expect(times(out, /» sub-agent agent:main:subagent:\S+ starts: say part/)).toBe(2);
  expect(times(out, /« sub-agent agent:main:subagent:\S+: ok/)).toBe(2);
  for (const words of ["part 1 is done", "part 2 is done"]) {
    expect(out.split("\n").filter((line) => line === `    ${words}`)).toHaveLength(1);
  }
  expect(out).not.toContain("Status: ok");
});

test("chat: /subagents lists the session's sub-agents, and /stop cancels them", async () => {
  const { home } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("/subagents\n");
  await chat.shows("This session has no sub-agents.");
  chat.stdin.write("spawn 2 jobs: wait 600 seconds\n");
  await chat.shows("agent: Started 2 sub-agents.");
  chat.stdin.write("/subagents\n");
  await chat.shows("SUB-AGENT");
  await chat.shows("job 2");
  chat.stdin.write("/stop\n");
  await chat.shows("also stopped: 2 runs that waited or belonged to sub-agents");
  chat.stdin.end("/subagents\nlist subagents\n");
  expect(await chat.code).toBe(0);
  expect(times(chat.out(), /subagent:\S+ +cancelled/)).toBe(2);
  expect(chat.out()).toContain("(job 1, finished, cancelled): wait 600 seconds");
  expect(chat.out()).not.toContain("« sub-agent");
});

test("sessions tree shows which session spawned which, for all sessions or below one, as text and as JSON", async () => {
  const subagents = { maxSpawnDepth: 2 };
  const { home } = await house({
    agents: { defaults: { subagents }, list: [{ id: "main" }, { id: "ops" }] },
  });
  const chat = call(home, ["chat"]);
  chat.stdin.write("spawn: spawn: say deep\n");
  await chat.shows("« sub-agent");
  chat.stdin.end();
  await chat.code;
  const { code, out, err } = await run(home, ["sessions", "tree"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const lines = out.split("\n");
  const at = lines.findIndex((line) => line.startsWith(MAIN));
  expect(lines[0]).toMatch(/^SESSION +STATE +UPDATED/);
  expect(lines[at]).toMatch(/^agent:main:main +idle +\d+ s ago$/);
  expect(lines[at + 1]).toMatch(/^└─ agent:main:subagent:\S+ +idle +\d+ s ago$/);
  expect(lines[at + 2]).toMatch(/^ {3}└─ agent:main:subagent:\S+ +idle +\d+ s ago$/);
  expect(out).toContain("agent:ops:main");
  const only = await run(home, ["sessions", "tree", "main"]);
  expect(only.out).not.toContain("agent:ops:main");
  expect(await runJson(home, ["sessions", "tree", "main"])).toMatchObject({
    sessions: [{ key: MAIN, children: [{ spawnedBy: MAIN, children: [{ children: [] }] }] }],
  });
  expect(await run(home, ["sessions", "tree", "agent:main:nobody"])).toMatchObject({ code: 1, out: "" });
});

test("sessions tree shows archived sessions only with --archived", async () => {
  const { home, gateway } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("spawn 1 job: say x\n");
  await chat.shows("« sub-agent");
  chat.stdin.end();
  await chat.code;
  const [, key = ""] = /« sub-agent (\S+):/.exec(chat.out()) ?? [];
  expect((await run(home, ["sessions", "tree"])).out).toMatch(/└─ \S+ +idle +\d+ s ago +job 1/);
  await gateway.stop(1_000);
  const store = await openSqlite({
    dir: join(home, ".parley", "state"),
    durability: "full",
    log: quietWorld().log,
  });
  await store.transaction((tx) => updateSession(tx, key, { archivedAt: 1 }));
  await store.close();
  await startGateway(home);
  expect((await run(home, ["sessions", "tree"])).out).not.toContain(key);
  expect((await run(home, ["sessions", "tree", "--archived"])).out).toMatch(/└─ \S+ +archived/);
});

test("the tree shows every session once; a session whose requester was removed is at the top", () => {
  const row = (key: string, createdAt: number, spawnedBy?: string) => {
    const base = { key, createdAt, updatedAt: createdAt, state: "idle" as const };
    return spawnedBy === undefined ? base : { ...base, spawnedBy };
  };
  const rows = [
    row("c2", 5, "a"),
    row("orphan", 4, "gone"),
    row("c1", 3, "a"),
    row("d", 2, "c1"),
    row("a", 1),
  ];
  const keys = (nodes: readonly ReturnType<typeof treeOf>[number][]): unknown[] =>
    nodes.map(({ key, children }) => [key, ...keys(children)]);
  expect(keys(treeOf(rows))).toEqual([["orphan"], ["a", ["c1", ["d"]], ["c2"]]]);
});

const NONE = { usable: false, text: "bubblewrap is not installed", mend: "Install bubblewrap." };

test.each([
  [{}, { usable: true, text: "bubblewrap works" }, 0, "✓ sandbox     off for every agent: bubblewrap works"],
  [{}, NONE, 0, "✓ sandbox     off for every agent: bubblewrap is not installed"],
  [
    { mode: "all" },
    { usable: true, text: "bubblewrap works" },
    0,
    "✓ sandbox     for main, ops (backend auto)",
  ],
  [{ mode: "all" }, NONE, 1, "bubblewrap is not installed; runs that need it are refused"],
])(
  "parley doctor with the sandbox settings %j and the report %j exits with code %i",
  async (sandbox, report, code, words) => {
    const agents = { defaults: { sandbox }, list: [{ id: "main" }, { id: "ops" }] };
    const { home } = await makeHome({ agents });
    const doctor = await run(home, ["doctor"], { sandbox: report });
    expect(doctor).toMatchObject({ code, out: expect.stringContaining(words) });
    if (!report.usable) expect(doctor.out).toContain("→ Install bubblewrap.");
  },
);

test("doctor names the agents whose commands run outside a sandbox", async () => {
  const list = [{ id: "main" }, { id: "ops", sandbox: { mode: "all" } }];
  const part = await makeHome({ agents: { defaults: { sandbox: { mode: "non-main" } }, list } });
  expect((await run(part.home, ["doctor"])).out).toContain(
    "commands of main in main sessions run outside a sandbox",
  );
  const all = await makeHome({ agents: { defaults: { sandbox: { mode: "all" } }, list } });
  const { out } = await run(all.home, ["doctor"]);
  expect(out).toContain("commands of main, ops run in a sandbox");
  expect(out).not.toMatch(/✓ sandbox|✗ sandbox/);
});

test("doctor says for each agent which of its commands an owner approves", async () => {
  const list = [
    { id: "main" },
    { id: "ops", tools: { exec: { approval: "always" } } },
    { id: "calm", sandbox: { mode: "all" } },
    { id: "mute", tools: { deny: ["exec"] } },
  ];
  const { home } = await makeHome({ agents: { list } });
  const { out } = await run(home, ["--json", "doctor", "--offline"]);
  const { findings } = JSON.parse(out) as { findings: { name: string; text: string }[] };
  expect(findings.filter(({ name }) => name === "approval").map(({ text }) => text)).toEqual([
    'main: an owner approves commands that may do more than read in the workspace (tools.exec.approval: "risky")',
    'ops: an owner approves every command (tools.exec.approval: "always")',
    'calm: commands run without approval (tools.exec.approval: "never")',
  ]);
});
