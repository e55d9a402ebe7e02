import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import JSON5 from "json5";
import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

const RESEARCH = "agent:research:main";

test("`parley may` shows, for each kind of access, the rule that decides and the settings that would change it", async () => {
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

test("`parley may` explains why access to a missing session is denied or allowed, and --json prints the whole answer", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { out } = await run(home, ["may", "main", "agent::nobody"]);
  expect(out).toBe("");
  const key = "agent:research:chat:00000000-0000-4000-8000-000000000000";
  expect((await run(home, ["may", "main", key])).out).toContain("this session does not exist");
  expect(await runJson(home, ["may", "main", key])).toMatchObject({
    target: { key, exists: false },
    answers: expect.arrayContaining([expect.objectContaining({ access: "send", allowed: true })]),
  });
  const wrong = await run(home, ["may", "main"]);
  expect(wrong.code).toBe(2);
  expect((await run(home, ["may", "main", key, "--access", "fly"])).code).toBe(2);
});

const POLICY = "../../../docs/POLICY.md";
/** A configuration on the page, followed by commands and their output. */
const EXAMPLE = /^```json5\n([\s\S]*?)^```\n\n```console\n([\s\S]*?)^```/gm;

test("docs/POLICY.md shows the real output of `parley may` (--update rewrites it)", async () => {
  let page = readFileSync(fileURLToPath(new URL(POLICY, import.meta.url)), "utf8");
  const examples = [...page.matchAll(EXAMPLE)];
  expect(examples.length).toBeGreaterThan(4);
  for (const [whole, settings = "", shown = ""] of examples) {
    const { home } = await makeHome({ tools: {}, ...JSON5.parse<Record<string, unknown>>(settings) });
    const gateway = await startGateway(home);
    // Looking up a session as an operator creates it.
    for (const key of ["main", RESEARCH, "agent:ops:main"]) await run(home, ["sessions", "show", key]);
    const commands = shown.split("\n").filter((line) => line.startsWith("$ parley "));
    const printed = [];
    for (const command of commands) {
      const { out, err } = await run(home, command.slice("$ parley ".length).split(" "));
      printed.push(`${command}\n${out}${err}`);
    }
    await gateway.stop();
    page = page.replace(whole, whole.replace(shown, printed.join("")));
  }
  await expect(page).toMatchFileSnapshot(POLICY);
});
