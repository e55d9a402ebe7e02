import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

interface Sessions {
  readonly sessions: readonly { readonly key: string }[];
}

async function homeWithWriter(): Promise<{ home: string; keys: () => Promise<string[]> }> {
  const { home } = await makeHome();
  await startGateway(home);
  expect((await run(home, ["send", "--session", "writer", "--wait", "30", "say hi"])).code).toBe(0);
  const keys = async (): Promise<string[]> =>
    ((await runJson(home, ["sessions", "list"])) as unknown as Sessions).sessions
      .map(({ key }) => key)
      .sort();
  return { home, keys };
}

test.each([
  ["send", (name: string) => ["send", "--session", name, "--wait", "30", "say hi"]],
  ["run", (name: string) => ["run", "--session", name, "say hi"]],
  ["chat", (name: string) => ["chat", "--session", name]],
])("%s opens no session for a mistyped name, unless --new says so", async (_, call) => {
  const { home, keys } = await homeWithWriter();
  const before = await keys();
  const refused = await run(home, call("writr"), { input: "say hi\n" });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('There is no session "writr".');
  expect(refused.err).toContain("Similar: agent:main:writer.");
  expect(await keys()).toEqual(before);
  const opened = await run(home, [...call("writr"), "--new"], { input: "say hi\n" });
  expect(opened).toMatchObject({ code: 0, err: expect.stringContaining("New session: agent:main:writr") });
  expect(await keys()).toEqual([...before, "agent:main:writr"].sort());
});

test("a name that is like no other opens a session, and the command says so", async () => {
  const { home, keys } = await homeWithWriter();
  const opened = await run(home, ["send", "--session", "budget", "say hi"]);
  expect(opened).toMatchObject({ code: 0, err: expect.stringContaining("New session: agent:main:budget") });
  expect(await keys()).toContain("agent:main:budget");
});

test("the sessions that are suggested for an unknown one have similar names, never uuids", async () => {
  const { home } = await homeWithWriter();
  await run(home, ["run", "say first"]);
  await run(home, ["run", "say second"]);
  const missing = await run(home, ["sessions", "history", "agent:main:zzz"]);
  expect(missing.err).toContain('no session "agent:main:zzz"');
  expect(missing.err).not.toContain("Closest");
  const typo = await run(home, ["sessions", "history", "agent:main:writre"]);
  expect(typo.err).toContain("Closest: agent:main:writer.");
});

test("a key of an agent that is not configured is refused with the agents, not with --new", async () => {
  const { home } = await homeWithWriter();
  const refused = await run(home, ["send", "--session", "agent:reserch:main", "say hi"]);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('no session "agent:reserch:main": no agent reserch');
  expect(refused.err).toContain("Configured agents: main, research, ops.");
  expect(refused.err).not.toContain("--new");
});
