// Makes a release: `npm run release -- 0.2.0`. Checks it, sets the version, builds the package and the
// archives (archives.ts), commits and tags, and prints what to push. Needs git, GNU tar and zip.
// R1: all work happens in a temporary clone. The repository gets the commit and the tag at the end, or, with
// --dry-run, nothing at all.
// R2: only a dry run may skip the checks or make archives for fewer systems.
// R3: --files makes the files of a release whose tag is checked out, and nothing else. The workflow that
// publishes a release does so, so that what it publishes is made of what the tag names.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { isLater } from "../src/store/schema/conversion.ts";
import { listSystems, makeArchive, unpackPackage } from "./archives.ts";
import { writeFormula, writeInstallScript } from "./installers.ts";
import { setVersions } from "./versions.ts";

const ROOT = process.cwd();
const USAGE =
  "npm run release -- X.Y.Z [--files] [--dry-run [--skip-checks] [--only SYSTEM,…]] [--out FOLDER]";
const PACKAGE_MAX_BYTES = 6 * 1024 * 1024;
const UNRELEASED = "## [Unreleased]\n";
const CHECKSUMS = "SHA256SUMS";

interface Options {
  readonly version: string;
  readonly isDryRun: boolean;
  /** Makes only the files, of the tag that is checked out. */
  readonly isTagged: boolean;
  readonly skipsChecks: boolean;
  /** The systems that get an archive. Default: all. */
  readonly only: readonly string[] | undefined;
  readonly out: string;
}

/** A reason not to release, for the person who asked for it. */
class Refusal extends Error {}

function read(folder: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: folder, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }).trim();
}

/** Runs a step of the release, whose output goes to the terminal. */
function run(folder: string, command: string, ...args: string[]): void {
  process.stdout.write(`\n== ${command} ${args.join(" ")}\n`);
  execFileSync(command, args, { cwd: folder, stdio: "inherit" });
}

function readOptions(): Options {
  const options = {
    "dry-run": { type: "boolean" },
    files: { type: "boolean" },
    "skip-checks": { type: "boolean" },
    only: { type: "string" },
    out: { type: "string" },
  } as const;
  let given: ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;
  try {
    given = parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Refusal(`${(error as Error).message}\n${USAGE}`);
  }
  const [version = "", ...rest] = given.positionals;
  if (!/^\d+\.\d+\.\d+$/.test(version) || rest.length > 0) {
    throw new Refusal(`Name one version, like 0.2.0: ${USAGE}`);
  }
  const { "dry-run": isDryRun = false, files: isTagged = false, only, out } = given.values;
  const { "skip-checks": skipsChecks = isTagged } = given.values;
  if (!isDryRun && ((skipsChecks && !isTagged) || only !== undefined)) {
    throw new Refusal("--skip-checks and --only need --dry-run: a release is checked and complete.");
  }
  const folder =
    out ?? (isDryRun ? mkdtempSync(join(tmpdir(), "parley-dry-run-")) : `release/out/${version}`);
  return { version, isDryRun, isTagged, skipsChecks, only: only?.split(","), out: resolve(ROOT, folder) };
}

/** Returns the text below `## [Unreleased]`, up to the section of the previous version. */
function readChanges(folder: string): string {
  const [, after = ""] = readFileSync(join(folder, "CHANGELOG.md"), "utf8").split(UNRELEASED);
  return after.replace(/^## \[[\s\S]*/m, "").trim();
}

function readVersion(folder: string): string {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

function checkBefore({ version, isDryRun, only, out }: Options): void {
  const current = readVersion(ROOT);
  if (!isLater(version, current)) {
    throw new Refusal(`${version} is not greater than ${current}, the version of package.json.`);
  }
  if (read(ROOT, "git", "tag", "--list", `v${version}`) !== "") {
    throw new Refusal(`The tag v${version} exists. Choose a greater version.`);
  }
  const changed = read(ROOT, "git", "status", "--porcelain");
  if (changed !== "") throw new Refusal(`Commit or stash these changes first:\n${changed}`);
  if (!isDryRun && read(ROOT, "git", "branch", "--show-current") === "") {
    throw new Refusal("No branch is checked out. A release is a commit on a branch: git switch main");
  }
  if (readChanges(ROOT) === "") {
    throw new Refusal(`CHANGELOG.md says nothing below "${UNRELEASED.trim()}". Write there what is new.`);
  }
  checkFolder(out);
  const names = listSystems(ROOT).map(({ name }) => name);
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Refusal(`No archive is for ${unknown}, only for ${names.join(", ")}.`);
}

/** Only a folder of an earlier release is emptied. */
function checkFolder(out: string): void {
  const names = existsSync(out) ? readdirSync(out) : [];
  if (names.length > 0 && !names.includes(CHECKSUMS)) {
    throw new Refusal(`${out} has other files. Name an empty or a new folder.`);
  }
}

function checkTag({ version, out }: Options): void {
  const tags = read(ROOT, "git", "tag", "--points-at", "HEAD").split("\n");
  if (!tags.includes(`v${version}`) || readVersion(ROOT) !== version) {
    throw new Refusal(`Check out the tag first: git switch --detach v${version}`);
  }
  checkFolder(out);
}

/** Turns `[Unreleased]` into the section of this version, below a new and empty one. */
function dateChanges(folder: string, version: string): void {
  const path = join(folder, "CHANGELOG.md");
  const date = new Date().toISOString().slice(0, 10);
  const text = readFileSync(path, "utf8").replace(UNRELEASED, `${UNRELEASED}\n## [${version}] - ${date}\n`);
  writeFileSync(path, text);
}

/** Returns a setting of git, which a dry run does not need. */
function readIdentity(name: string, isDryRun: boolean): string {
  try {
    return read(ROOT, "git", "config", name);
  } catch {
    if (isDryRun) return "nobody";
    throw new Refusal(`git does not know who commits: git config --global ${name} …`);
  }
}

/** Sets the version, checks all, commits and tags. The text of the tag is the changes, which GitHub shows. */
function makeCommit(clone: string, { version, isDryRun, skipsChecks }: Options): void {
  for (const name of ["user.name", "user.email"]) {
    // The clone does not have the settings of this repository, and git may have none elsewhere.
    run(clone, "git", "config", name, readIdentity(name, isDryRun));
  }
  const changes = readChanges(clone);
  setVersions(clone, version);
  dateChanges(clone, version);
  if (!skipsChecks) run(clone, "npm", "run", "check");
  run(clone, "npm", "run", "size");
  run(clone, "git", "commit", "--quiet", "--all", "--message", `release: ${version}`);
  const args = ["tag", "--annotate", "--cleanup=whitespace", "--file=-", `v${version}`];
  execFileSync("git", args, { cwd: clone, input: `Parley ${version}\n\n${changes}\n` });
}

function pack(clone: string, out: string): string {
  const [{ filename }] = JSON.parse(
    read(clone, "npm", "pack", "--json", "--silent", "--ignore-scripts", "--pack-destination", out),
  ) as [{ filename: string }];
  const packed = join(out, filename);
  const { size } = statSync(packed);
  process.stdout.write(`${filename}: ${(size / 1024 / 1024).toFixed(1)} MiB\n`);
  if (size > PACKAGE_MAX_BYTES) throw new Refusal(`${filename} has more than ${PACKAGE_MAX_BYTES} bytes.`);
  return packed;
}

function writeChecksums(out: string): void {
  const lines = readdirSync(out)
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(out, name)))
          .digest("hex")}  ${name}\n`,
    );
  writeFileSync(join(out, CHECKSUMS), lines.join(""));
}

/** Makes all files of the release in the folder `out`. */
function makeFiles(clone: string, { version, only, out }: Options): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  run(clone, "npm", "run", "build");
  const packed = pack(clone, out);
  const unpacked = join(clone, "../parley-gateway");
  unpackPackage(clone, packed, unpacked);
  const sbom = read(unpacked, "npm", "sbom", "--sbom-format=cyclonedx", "--package-lock-only");
  writeFileSync(join(out, `parley-gateway-${version}.cdx.json`), `${sbom}\n`);
  const systems = listSystems(clone).filter(({ name }) => only?.includes(name) !== false);
  const archives = systems.map((system) => {
    process.stdout.write(`\n== archive for ${system.name}\n`);
    return makeArchive(unpacked, out, `parley-gateway-${version}-${system.name}`, system);
  });
  if (archives.length > 0) {
    writeFileSync(join(out, "install.sh"), writeInstallScript(version, archives));
    chmodSync(join(out, "install.sh"), 0o755);
    writeFileSync(join(out, "parley-gateway.rb"), writeFormula(version, archives));
  }
  writeChecksums(out);
}

function listPushes({ version }: Options, branch: string): string {
  return [
    `git push origin ${branch} v${version}`,
    "# The workflows release and image then publish package, release, registry entry and image. Afterwards,",
    "# in a clone of parley-gateway/homebrew-tap (then commit and push it):",
    `gh release download v${version} --repo parley-gateway/parley --pattern "*.rb" --dir Formula --clobber`,
    "",
  ].join("\n");
}

function release(options: Options): void {
  const { version, isDryRun, isTagged, skipsChecks, out } = options;
  if (isTagged) checkTag(options);
  else checkBefore(options);
  const work = mkdtempSync(join(tmpdir(), "parley-release-"));
  try {
    const clone = join(work, "parley");
    run(ROOT, "git", "clone", "--quiet", ROOT, clone);
    if (skipsChecks) {
      symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
    } else {
      run(clone, "npm", "ci");
    }
    if (!isTagged) makeCommit(clone, options);
    makeFiles(clone, options);
    if (isTagged) return;
    if (!isDryRun) {
      run(ROOT, "git", "pull", "--quiet", "--ff-only", clone, "HEAD");
      run(ROOT, "git", "fetch", "--quiet", clone, "tag", `v${version}`);
    }
    const branch = read(ROOT, "git", "branch", "--show-current") || "main";
    const state = isDryRun
      ? `This was a dry run: nothing is committed or tagged. The files are in ${out}. To publish a release:`
      : `Version ${version} is committed and tagged, here only. To publish a release:`;
    process.stdout.write(`\n${state}\n\n${listPushes(options, branch)}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

try {
  release(readOptions());
} catch (error) {
  const { message } = error as Error;
  const said = error instanceof Refusal ? message : `The release failed, and changed nothing: ${message}`;
  process.stderr.write(`${said}\n`);
  process.exitCode = 1;
}
