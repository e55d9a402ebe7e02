// `parley agents show` and `parley agents memory`.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configFile, makeHome, run, runJson, startGateway } from "../kit.ts";

test("agents show prints each part with its size and file, and the files that are not used", async () => {
  const { home } = await makeHome();
  const workspace = join(home, ".parley", "workspace");
  mkdirSync(join(workspace, ".agents/skills/dull"), { recursive: true });
  writeFileSync(join(workspace, "AGENTS.md"), "Speak of \u001b[31mtea.\n");
  writeFileSync(join(workspace, ".agents/skills/dull/SKILL.md"), "nothing");
  await startGateway(home);
  const { out, code } = await run(home, ["agents", "show", "main"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^PART +BYTES +TOKENS +FILE$/m);
  expect(out).toMatch(/^Instruction file +\d+ +about \d+ +\/.+\/workspace\/AGENTS\.md$/m);
  expect(out).toMatch(/^Descriptions of \d+ tools +\d+ +about \d+$/m);
  expect(out).toMatch(/^Together +\d+ +about \d+$/m);
  expect(out).toMatch(/^Not used: .+SKILL\.md: has no description/m);
  expect(out).toContain("Speak of");
  expect(out).not.toContain("\u001b");
  const { parts } = await runJson(home, ["agents", "show", "main"]);
  expect(parts).toContainEqual(expect.objectContaining({ title: "Instruction file" }));
  const missing = await run(home, ["agents", "show", "mian"]);
  expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('there is no agent "mian"') });
});

test("agents memory prints the memory, and replaces it with the text of a file", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  expect((await run(home, ["agents", "memory", "main"])).out).toContain("no memory yet");
  writeFileSync(join(home, "notes.md"), "- The tea is green.\n");
  const set = await run(home, ["agents", "memory", "main", "--from", join(home, "notes.md")]);
  expect(set).toMatchObject({ code: 0, out: "- The tea is green.\n" });
  expect((await run(home, ["agents", "memory", "main"])).out).toBe("- The tea is green.\n");
  const missing = await run(home, ["agents", "memory", "main", "--from", join(home, "nothing")]);
  expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("could not be read") });
});

test.each(["without a gateway", "with a running gateway"])(
  "%s, agents add and remove change the file and keep its comments",
  async (how) => {
    const { home, port } = await makeHome();
    const file = configFile(home);
    writeFileSync(file, `// Ours.\n{\n  gateway: { port: ${port} },\n  session: { queueMax: 7 },\n}\n`);
    if (how.startsWith("with a")) await startGateway(home);
    const add = (...argv: string[]) => run(home, ["agents", "add", ...argv]);
    const added = await add("research", "--name", "Research", "--model", "offline/rehearsal");
    expect(added).toMatchObject({ code: 0, out: expect.stringContaining("Saved") });
    // An empty list means the agent main, which stays.
    expect(await runJson(home, ["config", "get", "agents.list"])).toMatchObject({
      value: [
        { id: "main", default: true },
        { id: "research", name: "Research", model: "offline/rehearsal" },
      ],
    });
    expect(await add("writer", "--workspace", "~/writing")).toMatchObject({ code: 0 });
    expect(await add("Research")).toMatchObject({ code: 1, err: expect.stringContaining("already") });
    expect(await add("two words")).toMatchObject({ code: 1, err: expect.stringContaining("id") });
    expect(await add("other", "--model", "no/model")).toMatchObject({
      code: 1,
      err: expect.stringContaining("model"),
    });
    const remove = (...argv: string[]) => run(home, ["agents", "remove", ...argv]);
    expect(await remove("writer")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
    const removed = await remove("writer", "--yes");
    expect(removed).toMatchObject({
      code: 0,
      err: expect.stringContaining("Its sessions stay in the store, and its files in ~/writing"),
    });
    expect(await remove("writer", "--yes")).toMatchObject({
      code: 1,
      err: expect.stringContaining("There are: main, research"),
    });
    expect(await remove("research", "--yes")).toMatchObject({ code: 0 });
    expect(await remove("main", "--yes")).toMatchObject({
      code: 1,
      err: expect.stringContaining("the only agent"),
    });
    expect(readFileSync(file, "utf8")).toMatch(
      /^\/\/ Ours\.\n\{\n {2}gateway: .*\n {2}session: \{ queueMax: 7 \},/,
    );
  },
);
