// Checks the container files without a container daemon: each copied path exists, no process runs as root, no
// secret is in the image, and the health check works with a real gateway. e2e/package.deep.test.ts runs the
// package from a read-only folder as another user.

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { COMPOSE_FILES, ROOT, readCompose, readDockerfile, resolveCompose } from "./deploy/compose.ts";
import { temporaryFolder } from "./kit/cleanup.ts";
import { freePort } from "./kit/loopback.ts";
import { startProcess } from "./kit/process/gateway-process.ts";
import { lacks } from "./kit/process/lacks.ts";

const read = (name: string): string => readFileSync(ROOT + name, "utf8");

const INSTRUCTIONS = readDockerfile();

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

test("a build stage copies only from an existing stage, and all have one exact version of the launcher's Node", () => {
  const stages = restOf("FROM").map((rest) => / AS (\w+)$/.exec(rest)?.[1]);
  for (const rest of restOf("COPY").filter((one) => one.startsWith("--from=")))
    expect(stages).toContain(/^--from=(\w+)/.exec(rest)?.[1]);
  const launcher = /NODE_MAJOR_MIN = (\d+)/.exec(read("bin/parley.js"))?.[1];
  const bases = new Set(restOf("FROM").map((rest) => rest.split(" ")[0]));
  expect([...bases]).toEqual([
    expect.stringMatching(new RegExp(`^node:${launcher}\\.\\d+\\.\\d+-bookworm-slim$`)),
  ]);
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
  for (const name of ["Dockerfile", ...COMPOSE_FILES]) {
    const settings = read(name)
      .split("\n")
      .filter((line) => !line.trim().startsWith("#"));
    expect(settings.filter((line) => /PASSWORD|TOKEN|API_KEY|SECRET/.test(line))).toEqual([]);
  }
  expect(restOf("ARG")).toEqual([]);
  const named = COMPOSE_FILES.flatMap((name) =>
    Object.values(readCompose(name).services).flatMap(({ env_file: file }) =>
      file === undefined ? [] : `${name.replace(/[^/]*$/, "")}${file}`,
    ),
  );
  expect(new Set(named)).toEqual(
    new Set(["database.env", "gateway.env", "deploy/gateway.env", "deploy/database.env"]),
  );
  expect(named.filter(isSent)).toEqual([]);
  const ignored = spawnSync("git", ["check-ignore", "--no-index", ...named], { cwd: ROOT, encoding: "utf8" });
  expect(ignored.stdout.trim().split("\n")).toEqual(named);
});

const SERVICES = COMPOSE_FILES.flatMap((file) =>
  Object.entries(readCompose(file).services).map(([name, service]) => ({ file, name, service })),
);

test.each(SERVICES.filter(({ name }) => name.startsWith("gateway")))(
  "$name of $file writes only to data and /tmp, has no privileges, and gets more time than a stop takes",
  ({ service }) => {
    expect(service).toMatchObject({
      read_only: true,
      tmpfs: ["/tmp"],
      volumes: ["data:/data"],
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      init: true,
    });
    // A gateway that its container kills cannot park its work. gateway.ts says how long a stop takes.
    expect(Number.parseInt(service.stop_grace_period ?? "", 10)).toBeGreaterThan(10);
    if (service.environment?.PARLEY_DATABASE_URL !== undefined)
      expect(service.depends_on?.database).toEqual({ condition: "service_healthy" });
  },
);

test("each compose file opens one port, to this machine only", () => {
  for (const file of COMPOSE_FILES) {
    const ports = SERVICES.filter((one) => one.file === file).flatMap(({ service }) => service.ports ?? []);
    expect(ports).toEqual(["127.0.0.1:7275:7275"]);
  }
});

test("the three gateways have the same settings, and the proxy asks each of them whether it is ready", () => {
  const { database, proxy, ...gateways } = readCompose("deploy/three.yaml").services;
  expect(Object.keys(gateways)).toHaveLength(3);
  expect(new Set(Object.values(gateways).map((one) => JSON.stringify(one))).size).toBe(1);
  expect(database?.healthcheck?.test).toContain("pg_isready");
  const config = read("deploy/haproxy.cfg");
  const servers = [...config.matchAll(/^ {2}server \w+ (\S+):7275$/gm)].map(([, name]) => name);
  expect(servers).toEqual(Object.keys(gateways));
  expect(proxy?.depends_on).toEqual(servers);
  expect(config).toContain("uri /readyz");
});

// Skipped on machines without docker-compose, which needs no daemon to read a file.
test.skipIf(lacks("docker-compose")).each(COMPOSE_FILES)(
  "docker-compose reads %s, and gives each service its secrets",
  (file) => {
    const { services } = resolveCompose(file, "PLANTED=yes\n");
    expect(Object.keys(services)).toEqual(Object.keys(readCompose(file).services).sort());
    for (const [name, { environment, image }] of Object.entries(services)) {
      expect(image).toMatch(
        /^(parley-gateway|ghcr\.io\/parley-gateway\/parley:latest|postgres:17|haproxy:3\.2)$/,
      );
      if (name !== "proxy") expect(environment).toMatchObject({ PLANTED: "yes" });
    }
  },
);

// Skipped on machines without haproxy, whose own parser checks its file.
test.skipIf(lacks("haproxy"))("haproxy reads the file of the proxy", () => {
  // No gateway has its name here, which haproxy accepts, because the file says so.
  execFileSync("haproxy", ["-c", "-f", `${ROOT}deploy/haproxy.cfg`], { stdio: "pipe" });
  const broken = join(temporaryFolder(), "haproxy.cfg");
  writeFileSync(broken, read("deploy/haproxy.cfg").replace("leastconn", "mostconn"));
  const { status, stderr } = spawnSync("haproxy", ["-c", "-f", broken], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("balance only supports") });
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
