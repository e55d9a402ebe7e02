import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

test("`parley labels` and `parley may` say what a session has read, what was decided, and what it may do", async () => {
  const { home } = await makeHome({});
  await startGateway(home);
  expect((await run(home, ["labels"])).out).toBe("Nothing was asked, refused or noted.\n");
  expect((await run(home, ["labels", "report", "--days", "3"])).out).toBe(
    "Nothing was asked, refused or noted.\n",
  );
  await run(home, ["sessions", "show", "main"]);
  const shown = await run(home, ["labels", "show", "main"]);
  expect(shown.out).toMatch(/^private: session agent:main:main, \d+ \S+ ago$/m);
  expect(shown.out).toContain("It has read nothing from outside.");
  const may = await run(home, ["may", "main", "fetch", "https://x.example/y"]);
  expect(may).toMatchObject({
    code: 0,
    out: expect.stringContaining("yes  the session has read nothing from outside"),
  });
  const wrong = await run(home, ["may", "main", "fly", "https://x.example/y"]);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('"fly" is no kind of call') });
  expect((await run(home, ["labels", "release", "main"])).out).toContain("Released agent:main:main.");
  expect(await runJson(home, ["labels"])).toMatchObject({
    decisions: [{ sink: "release", destination: "agent:main:main", decision: "allowed" }],
  });
});
