// `npm run release` in a small repository: what it refuses, and a whole release of a package without libraries.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../kit/engine/engine.ts";

const RELEASE = fileURLToPath(new URL("../../release/release.ts", import.meta.url));
const NOTHING = "node -e 0";
const OLD_IMAGE = "image: ghcr.io/parley-gateway/parley:0.1.0";

const FILES = {
  "package.json": JSON.stringify({
    name: "parley-gateway",
    version: "0.1.0",
    license: "MIT",
    files: ["parley.js"],
    scripts: { check: NOTHING, size: NOTHING, build: NOTHING, install: "node -e 'process.exit(1)'" },
  }),
  "package-lock.json": JSON.stringify({
    name: "parley-gateway",
    version: "0.1.0",
    lockfileVersion: 3,
    requires: true,
    packages: { "": { name: "parley-gateway", version: "0.1.0", license: "MIT" } },
  }),
  ".npmrc": "audit=false\nfund=false\nignore-scripts=true\n",
  ".gitignore": "node_modules/\nrelease/out/\n",
  "parley.js": "console.log(1);\n",
  "CHANGELOG.md":
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A bell.\n\n## [0.1.0] - 2026-01-02\n\n- The first.\n",
  "server.json": '{ "version": "0.1.0", "packages": [{ "version": "0.1.0", "transport": "2025-12-11" }] }\n',
  "agent.json":
    '{ "version": "0.0.9", "npx": { "package": "parley-gateway@0.0.9", "needs": "node@0.1.0" } }\n',
  "clients/claude/.claude-plugin/plugin.json": '{\n  "name": "parley",\n  "version": "0.1.0"\n}\n',
  "clients/zed/extension.toml":
    'version = "0.1.0"\nurl = "/download/v0.1.0/parley-gateway-0.1.0-macos-arm64.tar.gz"\n',
  "deploy/helm/Chart.yaml": 'apiVersion: v2\nversion: 0.1.0\nappVersion: "0.1.0"\nkubeVersion: ">=1.29.0"\n',
  "deploy/three.yaml": `${OLD_IMAGE}\n`,
  "compose.yaml": "image: ghcr.io/parley-gateway/parley:${PARLEY_VERSION:-0.1.0}\nother: postgres:17.0.0\n",
  "docs/OLD.md": `${OLD_IMAGE}\nParley 0.1.0 listens, since 0.1.0.\n`,
};

function git(folder: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd: folder, encoding: "utf8" }).trim();
}

function makeRepository(folder = temporaryFolder(), changed: Record<string, string> = {}): string {
  for (const [name, text] of Object.entries({ ...FILES, ...changed })) {
    mkdirSync(join(folder, dirname(name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  git(folder, "init", "--quiet", "--initial-branch=main");
  git(folder, "config", "user.name", "Ada");
  git(folder, "config", "user.email", "ada@example.com");
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--message", "a package");
  return folder;
}

function release(folder: string, ...args: string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [RELEASE, ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, out: stdout, err: stderr };
}

/** A repository that no test changes. */
let small: string;
beforeAll(() => {
  small = makeRepository(mkdtempSync(join(tmpdir(), "parley-small-")));
});
afterAll(() => rmSync(small, { recursive: true, force: true }));

test.each([
  [[], /^Name one version, like 0\.2\.0: npm run release -- X\.Y\.Z/],
  [["v0.2.0"], /^Name one version, like 0\.2\.0/],
  [["0.2.0", "0.3.0"], /^Name one version, like 0\.2\.0/],
  [["0.2.0", "--dry"], /^Unknown option '--dry'/],
  [["0.2.0", "--skip-checks"], /^--skip-checks and --only need --dry-run/],
  [["0.1.0"], /^0\.1\.0 is not greater than 0\.1\.0, the version of package\.json\.\n$/],
  [["0.0.9"], /^0\.0\.9 is not greater than 0\.1\.0/],
  [["0.10.0", "--dry-run", "--only", "plan9-x64"], /^No archive is for plan9-x64/],
  [["0.10.0", "--dry-run", "--out", "."], /has other files\. Name an empty or a new folder\.\n$/],
  [["0.9.0", "--files"], /^Check out the tag first: git switch --detach v0\.9\.0\n$/],
])("refuses the arguments %j with one sentence", (args, said) => {
  const { status, out, err } = release(small, ...args);
  expect({ status, out, err }).toEqual({ status: 1, out: "", err: expect.stringMatching(said) });
});

test("refuses a tag that exists, a changed tree, a detached head and a changelog without news", () => {
  const folder = makeRepository();
  git(folder, "tag", "v0.2.0");
  expect(release(folder, "0.2.0").err).toBe("The tag v0.2.0 exists. Choose a greater version.\n");
  writeFileSync(join(folder, "notes.txt"), "");
  expect(release(folder, "0.3.0").err).toBe("Commit or stash these changes first:\n?? notes.txt\n");
  const detached = makeRepository();
  git(detached, "checkout", "--quiet", "--detach");
  expect(release(detached, "0.2.0").err).toMatch(/^No branch is checked out\./);
  const silent = makeRepository(undefined, {
    "CHANGELOG.md": "## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n\n- The first.\n",
  });
  expect(release(silent, "0.2.0").err).toMatch(/^CHANGELOG\.md says nothing below "## \[Unreleased\]"\./);
});

test("R1: if a check fails, the repository is as it was", () => {
  const scripts = { check: "node -e 'process.exit(3)'", size: NOTHING, build: NOTHING };
  const folder = makeRepository(undefined, {
    "package.json": JSON.stringify({ name: "parley-gateway", version: "0.1.0", license: "MIT", scripts }),
  });
  const before = git(folder, "rev-parse", "HEAD");
  const { status, err } = release(folder, "0.2.0");
  expect({ status, err }).toMatchObject({
    status: 1,
    err: expect.stringContaining("The release failed, and changed nothing: Command failed: npm run check"),
  });
  expect([
    git(folder, "rev-parse", "HEAD"),
    git(folder, "status", "--porcelain"),
    git(folder, "tag"),
  ]).toEqual([before, "", ""]);
});

test("sets the version everywhere, commits, tags, packs, and prints what to push", () => {
  const folder = makeRepository();
  const { status, out, err } = release(folder, "0.2.0");
  expect({ status, err }).toMatchObject({ status: 0 });
  expect(git(folder, "log", "--format=%s by %an", "-1")).toBe("release: 0.2.0 by Ada");
  expect(git(folder, "status", "--porcelain")).toBe("");
  expect(git(folder, "rev-parse", "v0.2.0^{commit}")).toBe(git(folder, "rev-parse", "main"));
  expect(git(folder, "tag", "--list", "--format=%(contents)")).toBe("Parley 0.2.0\n\n### Added\n\n- A bell.");

  const read = (name: string): string => readFileSync(join(folder, name), "utf8");
  expect(read("CHANGELOG.md")).toMatch(
    /^# Changelog\n\n## \[Unreleased\]\n\n## \[0\.2\.0\] - \d{4}-\d\d-\d\d\n\n### Added\n\n- A bell\.\n\n## \[0\.1\.0\]/,
  );
  expect(JSON.parse(read("package.json")).version).toBe("0.2.0");
  expect(JSON.parse(read("package-lock.json"))).toMatchObject({
    version: "0.2.0",
    packages: { "": { version: "0.2.0" } },
  });
  expect(read("server.json")).toBe(FILES["server.json"].replaceAll("0.1.0", "0.2.0"));
  expect(read("agent.json")).toBe(FILES["agent.json"].replaceAll("0.0.9", "0.2.0"));
  for (const name of [
    "clients/claude/.claude-plugin/plugin.json",
    "clients/zed/extension.toml",
    "deploy/three.yaml",
  ] as const)
    expect(read(name)).toBe(FILES[name].replaceAll("0.1.0", "0.2.0"));
  expect(read("deploy/helm/Chart.yaml")).toBe(FILES["deploy/helm/Chart.yaml"].replaceAll("0.1.0", "0.2.0"));
  expect(read("compose.yaml")).toBe(FILES["compose.yaml"].replace("0.1.0", "0.2.0"));
  expect(read("docs/OLD.md")).toBe(FILES["docs/OLD.md"].replace("Parley 0.1.0", "Parley 0.2.0"));

  const made = join(folder, "release/out/0.2.0");
  const names = ["SHA256SUMS", "parley-gateway-0.2.0.cdx.json", "parley-gateway-0.2.0.tgz"];
  expect(readdirSync(made).sort()).toEqual(names);
  const pushes = out.slice(out.indexOf("To publish a release:"));
  expect(pushes).toContain("git push origin main v0.2.0\n");

  // R3: the workflow makes the same package of the tag.
  const again = join(temporaryFolder(), "files");
  expect(release(folder, "0.2.0", "--files", "--out", again)).toMatchObject({ status: 0, err: "" });
  const packed = "parley-gateway-0.2.0.tgz";
  expect(readFileSync(join(again, packed))).toEqual(readFileSync(join(made, packed)));
  writeFileSync(join(folder, "news.txt"), "later\n");
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--message", "later");
  const late = release(folder, "0.2.0", "--files", "--out", again);
  expect(late.err).toBe("Check out the tag first: git switch --detach v0.2.0\n");
});
