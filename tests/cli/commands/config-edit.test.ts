// `parley config edit`, with small shell scripts as the editor.

import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { call, configFile, makeHome, run } from "../kit.ts";

const FILE =
  '// Ours.\n{\n  session: { queueMax: 7 }, // short\n  gateway: { auth: { token: "apple-pie-17-and-some-more-of-it" } },\n}\n';
const to = (value: string): string => FILE.replace("queueMax: 7", `queueMax: ${value}`);
const NINE = to("9");

/** Makes a home, and an editor that runs these shell commands with the file as `$1`. */
async function desk(script: string, file = FILE) {
  const { home } = await makeHome();
  writeFileSync(configFile(home), file);
  return { home, options: { env: editor(home, script) } };
}

function editor(home: string, script: string): Record<string, string> {
  const path = join(home, "editor.sh");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
  return { EDITOR: path, PATH: process.env.PATH ?? "" };
}

const now = (home: string): string => readFileSync(configFile(home), "utf8");
const keptIn = (home: string): string[] =>
  readdirSync(dirname(configFile(home))).filter((name) => name.includes(".edited-"));

/** Replaces the number of `queueMax` in the file. */
const change = (value: string) => `sed -i 's/queueMax: [^ ]*/queueMax: ${value}/' "$1"`;

test("config edit opens a private copy of the file, shows the diff and saves it", async () => {
  const { home, options } = await desk(
    `stat -c %a "$1" "$(dirname "$1")" > $0.modes; echo "$1" > $0.path; cp "$1" $0.saw; ${change("9")}`,
  );
  const done = await run(home, ["config", "edit", "--yes"], options);
  expect(done).toMatchObject({
    code: 0,
    err: "",
    out: expect.stringContaining(`Saved ${configFile(home)}.`),
  });
  expect(done.out).toContain("+  session: { queueMax: 9 }, // short");
  expect(done.out).not.toContain("apple-pie-17");
  expect(now(home)).toBe(NINE);
  const noted = (name: string) => readFileSync(join(home, `editor.sh.${name}`), "utf8");
  expect(noted("modes")).toBe("600\n700\n");
  expect(noted("saw")).toBe(FILE);
  expect(existsSync(noted("path").trim())).toBe(false);
  expect(keptIn(home)).toEqual([]);
});

test("VISUAL comes before EDITOR, and may have arguments", async () => {
  const { home, options } = await desk('[ "$1" = --wait ] && shift && printf "{}\\n" > "$1"');
  const env = { ...options.env, VISUAL: `${options.env.EDITOR} --wait`, EDITOR: "false" };
  expect(await run(home, ["config", "edit", "--yes"], { env })).toMatchObject({ code: 0 });
  expect(now(home)).toBe("{}\n");
});

test("an editor that fails or changes nothing writes nothing", async () => {
  const { home, options } = await desk(`${change("9")}; exit 3`);
  const failed = await run(home, ["config", "edit", "--yes"], options);
  expect(failed).toMatchObject({ code: 1, err: expect.stringContaining("failed: exit code 3") });
  const same = { env: editor(home, ":") };
  expect(await run(home, ["config", "edit", "--yes"], same)).toMatchObject({ out: "Nothing changes.\n" });
  expect(await run(home, ["config", "edit"], same)).toMatchObject({
    code: 2,
    err: expect.stringContaining("Give --yes"),
  });
  expect(now(home)).toBe(FILE);
  expect(keptIn(home)).toEqual([]);
});

test("an invalid text goes back to the editor, or is kept in a private file", async () => {
  const { home, options } = await desk(`grep -q many "$1" && ${change("9")} || ${change('"many"')}`);
  const refused = await run(home, ["config", "edit", "--yes"], options);
  const [kept = ""] = keptIn(home);
  const path = join(dirname(configFile(home)), kept);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining(path) });
  expect(refused.err).toContain("session.queueMax");
  expect(readFileSync(path, "utf8")).toBe(to('"many"'));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(now(home)).toBe(FILE);
  const asked = call(home, ["config", "edit"], { ...options, isTTY: true });
  await asked.shows("Edit again? [Y/n]");
  asked.stdin.write("\n");
  await asked.shows("Save? [Y/n]");
  expect(now(home)).toBe(FILE);
  asked.stdin.write("y\n");
  expect(await asked.code).toBe(0);
  expect(now(home)).toBe(NINE);
  expect(keptIn(home)).toEqual([kept]);
});

test("a declined edit is dropped, and one without an answer is kept", async () => {
  const { home, options } = await desk(change("9"));
  for (const [answer, count] of [
    ["n\n", 0],
    [undefined, 1],
  ] as const) {
    const asked = call(home, ["config", "edit"], { ...options, isTTY: true });
    await asked.shows("Save? [Y/n]");
    asked.stdin.end(answer);
    expect(await asked.code).toBe(1);
    expect(keptIn(home)).toHaveLength(count);
  }
  expect(now(home)).toBe(FILE);
});

test("config edit keeps the edited text if the file changed meanwhile", async () => {
  const { home, options } = await desk("");
  const theirs = to("8");
  const script = `${change("9")}; printf '%s' '${theirs}' > ${configFile(home)}`;
  const done = await run(home, ["config", "edit", "--yes"], { ...options, env: editor(home, script) });
  const [kept = ""] = keptIn(home);
  expect(done).toMatchObject({ code: 1, err: expect.stringContaining(kept) });
  expect(done.err).toContain("the file has changed since you read it");
  expect(readFileSync(join(dirname(configFile(home)), kept), "utf8")).toBe(NINE);
  expect(now(home)).toBe(theirs);
});

test("config edit repairs a file that is no JSON5", async () => {
  const { home, options } = await desk(`printf '{}\\n' > "$1"`, "{ session: ");
  expect(await run(home, ["config", "edit", "--yes"], options)).toMatchObject({ code: 0 });
  expect(now(home)).toBe("{}\n");
});

test("config edit hides the secrets of a running gateway's file, and names what needs a restart", async () => {
  const home = homeWith({ session: { queueMax: 7 } });
  const gateway = await startProcess({ home });
  const env = editor(home, `cp "$1" $0.saw; sed -i 's/"session": *{/"session": { "mainKey": "desk",/' "$1"`);
  const at = ["--url", gateway.url, "--token", gateway.token];
  const done = await run(home, [...at, "config", "edit", "--yes"], { env });
  expect(done).toMatchObject({ code: 0, err: "" });
  expect(done.out).toContain("Takes effect after a restart: session.mainKey.\nSaved");
  const saw = readFileSync(join(home, "editor.sh.saw"), "utf8");
  expect(saw).toContain("[hidden ");
  expect(saw).not.toContain(gateway.token);
  expect(now(home)).toContain(gateway.token);
  expect(now(home)).toContain("desk");
});
