// Checks the container files without a container daemon: each copied path exists, no process runs as root, no
// secret is in the image, and the health check works with a real gateway. e2e/package.deep.test.ts runs the
// package from a read-only folder as another user.

import { execFile, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "./kit/loopback.ts";
import { startProcess } from "./kit/process/gateway-process.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (name: string): string => readFileSync(ROOT + name, "utf8");

/** The Dockerfile's instructions in order, with continued lines joined. */
const INSTRUCTIONS = read("Dockerfile")
  .replace(/\\\n\s*/g, " ")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => /^(\w+) (.*)$/.exec(line) ?? [])
  .map(([, name = "", rest = ""]) => ({ name, rest }));

const restOf = (name: string): string[] =>
  INSTRUCTIONS.filter((one) => one.name === name).map(({ rest }) => rest);

/** Returns true if a path is sent to the builder. The last matching rule of .dockerignore decides. */
function isSent(path: string): boolean {
  let sent = true;
  for (const line of read(".dockerignore").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const rule = line.replace(/^!/, "");
    const pattern = rule
      .replace(/[.]/g, "\\.")
      .replace(/\*\*\//g, "(.+/)?")
      .replace(/(?<!\))\*/g, "[^/]*");
    if (new RegExp(`^${pattern}(/|$)`).test(path)) sent = line.startsWith("!");
  }
  return sent;
}

test("this test's parser of .dockerignore excludes single files, not only folders", () => {
  for (const path of [
    "gateway.env",
    "docs/screenshots/a.png",
    "ui/node_modules/x",
    "ui/.env",
    ".git/config",
    "tests/a.ts",
  ])
    expect({ path, sent: isSent(path) }).toEqual({ path, sent: false });
});

test("every file that the image copies exists, and is sent to the builder", () => {
  const sources = restOf("COPY")
    .filter((rest) => !rest.startsWith("--from="))
    .flatMap((rest) => rest.split(" ").slice(0, -1));
  expect(sources.length).toBeGreaterThan(8);
  expect(sources.filter((path) => !existsSync(ROOT + path) || !isSent(path))).toEqual([]);
  // The image needs the files that the package contains, and the files that build the package.
  const { files } = JSON.parse(read("package.json")) as { files: string[] };
  const made = files.filter((name) => !name.startsWith("!") && name !== "dist");
  expect(made.filter((name) => !sources.includes(name))).toEqual([]);
});

test("a build stage copies only from an existing stage, and its Node is new enough", () => {
  const stages = restOf("FROM").map((rest) => / AS (\w+)$/.exec(rest)?.[1]);
  for (const rest of restOf("COPY").filter((one) => one.startsWith("--from=")))
    expect(stages).toContain(/^--from=(\w+)/.exec(rest)?.[1]);
  const launcher = /NODE_MAJOR_MIN = (\d+)/.exec(read("bin/parley.js"))?.[1];
  for (const rest of restOf("FROM")) expect(rest).toMatch(new RegExp(`^node:${launcher}-slim( |$)`));
  // The package name. npm derives the name of the packed file from it.
  const { name } = JSON.parse(read("package.json")) as { name: string };
  expect(read("Dockerfile")).toContain(`/tmp/${name}-*.tgz`);
});

test("the last stage runs as a user other than root, and starts the program that the package contains", () => {
  const last = INSTRUCTIONS.slice(INSTRUCTIONS.findLastIndex(({ name }) => name === "FROM"));
  const at = (name: string) => last.findIndex((one) => one.name === name);
  expect(last[at("USER")]?.rest).toBe("node");
  expect(at("USER")).toBeLessThan(at("ENTRYPOINT"));
  expect(last.slice(at("USER")).filter(({ name }) => name === "RUN" || name === "COPY")).toEqual([]);
  expect(JSON.parse(last[at("ENTRYPOINT")]?.rest ?? "[]")).toEqual(["node", "/opt/parley/bin/parley.js"]);
  expect(read("bin/parley.js").split("\n")[0]).toBe("#!/usr/bin/env node");
});

test("the container files contain no secret, and files with secrets are excluded from the repository and from the image", () => {
  for (const name of ["Dockerfile", "compose.yaml"]) {
    const settings = read(name)
      .split("\n")
      .filter((line) => !line.trim().startsWith("#"));
    expect(settings.filter((line) => /PASSWORD|TOKEN|API_KEY|SECRET/.test(line))).toEqual([]);
  }
  expect(restOf("ARG")).toEqual([]);
  const named = [...read("compose.yaml").matchAll(/env_file: (\S+)/g)].map(([, file = ""]) => file);
  expect(named).toEqual(["database.env", "gateway.env"]);
  expect(named.filter(isSent)).toEqual([]);
  const ignored = spawnSync("git", ["check-ignore", "--no-index", ...named], { cwd: ROOT, encoding: "utf8" });
  expect(ignored.stdout.trim().split("\n")).toEqual(named);
});

test("the compose file restricts the gateway: it writes only to data and /tmp, has no privileges, and listens only on this machine", () => {
  const gateway =
    read("compose.yaml")
      .split(/^ {2}gateway:\n/m)[1]
      ?.split(/^\S/m)[0] ?? "";
  for (const words of [
    "read_only: true",
    "- ALL",
    "no-new-privileges:true",
    "- data:/data",
    "- /tmp",
    "init: true",
  ])
    expect(gateway).toContain(words);
  expect(gateway).toMatch(/depends_on:\s+database:\s+condition: service_healthy/);
  expect([...gateway.matchAll(/^ {6}- "(.*:\d+:\d+)"$/gm)].map(([, port]) => port)).toEqual([
    "127.0.0.1:7275:7275",
  ]);
  // The container's grace period must be longer than the gateway's, or the gateway is killed before it has
  // stopped.
  expect(Number(/stop_grace_period: (\d+)s/.exec(gateway)?.[1])).toBeGreaterThan(10);
  expect(read("compose.yaml")).not.toContain("\t");
});

test("the health check succeeds only while the gateway works", async () => {
  const [command = "[]"] = /\[.*\]/.exec(restOf("HEALTHCHECK")[0] ?? "") ?? [];
  const [program, ...words] = JSON.parse(command) as string[];
  expect(program).toBe("node");
  const check = (port: number) => {
    const args = words.map((word) => word.replace("7275", String(port)));
    return promisify(execFile)(process.execPath, args).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
  };
  const gateway = await startProcess({ config: {} });
  expect(await check(Number(new URL(gateway.url).port))).toBe(0);
  expect(await check(await freePort())).toBe(1);
});
