// Benchmarks an install: the disk space of `npm ci` for a user of Parley, with and without the libraries of
// optional channels. Node itself is not counted. The packages are installed into an empty folder. If the
// registry is unreachable, prints a note instead of a figure.

import { execFile } from "node:child_process";
import { copyFileSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inFolder } from "./in-folder.ts";
import type { Row } from "./measure.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const INSTALL_MAX_MS = 300_000;
/** The unit of `blocks` in the result of `lstat`. It does not depend on the file system. */
const BLOCK_BYTES = 512;

/** Returns the disk space of a folder in MB, as `du` counts it. */
function diskMb(path: string): number {
  const stat = lstatSync(path);
  const own = (stat.blocks * BLOCK_BYTES) / 2 ** 20;
  if (!stat.isDirectory()) return own;
  return readdirSync(path).reduce((sum, name) => sum + diskMb(join(path, name)), own);
}

/** Returns the number of packages that npm recorded in this folder. */
function packagesIn(nodeModules: string): number {
  const written = JSON.parse(readFileSync(join(nodeModules, ".package-lock.json"), "utf8")) as {
    packages: object;
  };
  return Object.keys(written.packages).length;
}

async function install(omit: readonly string[]): Promise<{ megabytes: number; packages: number }> {
  return inFolder(async (dir) => {
    for (const file of ["package.json", "package-lock.json", ".npmrc"]) {
      copyFileSync(join(ROOT, file), join(dir, file));
    }
    const args = ["ci", "--ignore-scripts", "--fetch-retries=0", ...omit.map((kind) => `--omit=${kind}`)];
    await promisify(execFile)("npm", args, { cwd: dir, timeout: INSTALL_MAX_MS });
    const nodeModules = join(dir, "node_modules");
    return { megabytes: diskMb(nodeModules), packages: packagesIn(nodeModules) };
  });
}

const KINDS = [
  { size: "without optional ones", omit: ["dev", "optional"], target: "< 150" },
  { size: "with Telegram and Discord", omit: ["dev"] },
] as const;

export async function installSize(): Promise<Row[]> {
  const rows: Row[] = [];
  try {
    for (const { size, omit, ...rest } of KINDS) {
      const { megabytes, packages } = await install(omit);
      rows.push({ name: "install, on the disk", size, unit: "MB", samples: [megabytes], ...rest });
      rows.push({ name: "install", size, unit: "packages", samples: [packages] });
    }
  } catch (error) {
    const { stderr = String(error) } = error as { stderr?: string };
    console.error(`no figure of an install: npm ci failed here: ${stderr.trim().split("\n")[0]}`);
  }
  return rows;
}
