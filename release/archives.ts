// Makes the archive of a system: a folder with the package, its libraries and its own Node. It needs nothing
// else. The Node is the one that npm installs with the package there.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

interface System {
  /** Like `macos-arm64`. */
  readonly name: string;
  readonly os: string;
  readonly cpu: string;
  /** The package of Node. */
  readonly node: string;
}

/** A file of the release, with its checksum. */
export interface Archive {
  readonly system: string;
  readonly file: string;
  readonly sha256: string;
}

const OS_NAMES: Readonly<Record<string, string>> = { darwin: "macos", win32: "windows" };

/** The files of the checkout that decide which libraries npm installs. */
const LOCK = ["package-lock.json", ".npmrc"];
/** The licence of the Node that runs this, which npm installed. */
const NODE_LICENSE = join(dirname(process.execPath), "../LICENSE");

const LAUNCHER = `#!/bin/sh
# Starts Parley with the Node in this folder.
self=$0
while [ -h "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
here=$(cd "$(dirname "$self")" && pwd -P)
exec "$here/bin/node" "$here/bin/parley.js" "$@"
`;
const WINDOWS_LAUNCHER = '@"%~dp0bin\\node.exe" "%~dp0bin\\parley.js" %*\r\n';

/** Lists the systems for which the package brings a Node. */
export function listSystems(root: string): System[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return Object.keys(packages[""].optionalDependencies ?? {})
    .filter((name) => /^node-.+-(arm64|x64)$/.test(name))
    .map((node) => {
      const { os, cpu } = packages[`node_modules/${node}`] as { os: string; cpu: string };
      return { name: `${OS_NAMES[os] ?? os}-${cpu}`, os, cpu, node };
    });
}

/**
 * Unpacks the package into a folder, whose lock file then names exactly the libraries that it needs: those of
 * traces, too, because nobody installs them into an archive later.
 */
export function unpackPackage(clone: string, packed: string, folder: string): void {
  mkdirSync(folder);
  execFileSync("tar", ["-xzf", packed, "--strip-components=1", "-C", folder]);
  for (const name of LOCK) copyFileSync(join(clone, name), join(folder, name));
  const path = join(folder, "package.json");
  const { devDependencies, peerDependencies, peerDependenciesMeta, scripts, ...kept } = JSON.parse(
    readFileSync(path, "utf8"),
  );
  const dependencies = { ...kept.dependencies, ...peerDependencies };
  writeFileSync(path, `${JSON.stringify({ ...kept, dependencies }, undefined, 2)}\n`);
  const quiet = ["--ignore-scripts", "--prefer-offline", "--loglevel=error"];
  execFileSync("npm", ["install", "--package-lock-only", ...quiet], { cwd: folder, stdio: "inherit" });
}

/** Makes the archive in the folder `out`. `unpacked`: the folder of `unpackPackage`. */
export function makeArchive(unpacked: string, out: string, name: string, system: System): Archive {
  const work = mkdtempSync(join(tmpdir(), "parley-archive-"));
  try {
    const folder = join(work, name);
    cpSync(unpacked, folder, { recursive: true });
    installLibraries(folder, system);
    const isWindows = system.os === "win32";
    const launcher = isWindows ? "parley.cmd" : "parley";
    writeFileSync(join(folder, launcher), isWindows ? WINDOWS_LAUNCHER : LAUNCHER, { mode: 0o755 });
    const file = `${name}.${isWindows ? "zip" : "tar.gz"}`;
    const path = join(out, file);
    if (isWindows) execFileSync("zip", ["-qrX", path, name], { cwd: work });
    else {
      const anonymous = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
      execFileSync("tar", [...anonymous, "-czf", path, name], { cwd: work });
    }
    const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
    return { system: system.name, file, sha256 };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Installs what the lock file names for this system, and puts its Node beside the launcher. */
function installLibraries(folder: string, { os, cpu, node }: System): void {
  const system = [`--os=${os}`, `--cpu=${cpu}`, ...(os === "linux" ? ["--libc=glibc"] : [])];
  const quiet = ["--ignore-scripts", "--prefer-offline", "--loglevel=error"];
  execFileSync("npm", ["ci", ...quiet, ...system], { cwd: folder, stdio: "inherit" });
  for (const name of LOCK) rmSync(join(folder, name));
  const installed = join(folder, "node_modules", node);
  const program = os === "win32" ? "node.exe" : "node";
  renameSync(join(installed, "bin", program), join(folder, "bin", program));
  // The packages of Node for Windows do not contain its licence.
  const license = [join(installed, "LICENSE"), NODE_LICENSE].find(existsSync);
  if (license === undefined) throw new Error("no package of Node contains its licence");
  copyFileSync(license, join(folder, "bin/LICENSE-of-node"));
  rmSync(installed, { recursive: true });
}
