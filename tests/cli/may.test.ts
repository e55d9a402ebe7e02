import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "./kit.ts";

const RESEARCH = "agent:research:main";

test("may says what one session may do to another, by which rule, and what would change it", async () => {
  const { home } = await makeHome({ tools: { sessions: { visibility: "tree" } } });
  await startGateway(home);
  const asked = await run(home, ["may", "main", RESEARCH]);
  expect(asked).toMatchObject({ code: 0, err: "" });
  const [title, ...lines] = asked.out.trimEnd().split("\n");
  expect(title).toBe(`agent:main:main -> ${RESEARCH}`);
  expect(lines[0]).toMatch(/^list +no +session agent:research:main is not visible here/);
  expect(asked.out).toContain('would need tools.sessions.visibility: "all"');
  expect(asked.out).toMatch(/^spawn +no +agent "research" is not in agents\.list\[main\]/m);
  const own = await run(home, ["may", "main", "main", "--access", "read"]);
  expect(own.out).toBe("agent:main:main -> agent:main:main\nread    yes  it is its own session\n");
});

test("may tells of sessions that are not there, and with --json all of it", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { out } = await run(home, ["may", "main", "agent:research:nobody"]);
  expect(out).toBe("");
  const key = "agent:research:chat:00000000-0000-4000-8000-000000000000";
  expect((await run(home, ["may", "main", key])).out).toContain("there is no such session");
  expect(await runJson(home, ["may", "main", key])).toMatchObject({
    target: { key, exists: false },
    answers: expect.arrayContaining([expect.objectContaining({ access: "send", allowed: true })]),
  });
  const wrong = await run(home, ["may", "main"]);
  expect(wrong.code).toBe(2);
  expect((await run(home, ["may", "main", key, "--access", "fly"])).code).toBe(2);
});
