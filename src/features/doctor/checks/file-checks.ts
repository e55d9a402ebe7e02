// Checks files: their permissions, the free disk space, and whether the clock is behind their dates. If a
// path does not exist yet, checks the nearest existing folder above it.

import { stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Cli } from "../../../cli/cli.ts";
import { size } from "../../../cli/layout.ts";
import { octalMode, othersReach } from "../../../config/file-mode.ts";
import { TOKEN_FILE } from "../../../contract/protocol.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { bad, good, risk } from "./finding.ts";

const OTHERS_WRITE = 0o022;
const FREE_WARN_BYTES = 1024 ** 3;
const FREE_NEEDED_BYTES = 64 * 1024 ** 2;
/** A clock that is behind by less than this is normal: clocks are corrected. */
const CLOCK_BACK_MS = 60_000;

/** Warns if other users can read a file or directory that only its owner should read. */
async function checkPrivate(file: string): Promise<Finding[]> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !othersReach(found.mode)) return [];
  const wanted = found.isDirectory() ? "700" : "600";
  const text = `${file} has mode ${octalMode(found.mode)}: other users of this machine can read it`;
  return [risk("permissions", text, `chmod ${wanted} ${file}`)];
}

/**
 * Reports a problem if other users can change a file that controls the gateway, or put another file in its
 * place.
 */
async function checkUnchangeable(file: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const path of [file, dirname(file)]) {
    const found = await stat(path).catch(() => undefined);
    const sticky = found?.isDirectory() === true && (found.mode & 0o1000) !== 0;
    if (found === undefined || process.platform === "win32" || sticky) continue;
    if ((found.mode & OTHERS_WRITE) === 0) continue;
    const text = `${path} has mode ${octalMode(found.mode)}: other users can change what the gateway does`;
    findings.push(bad("permissions", text, `chmod go-w ${path}`));
  }
  return findings;
}

/** Returns the path if it exists, or the nearest existing folder above it. */
async function existingFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined || dirname(path) === path ? path : existingFolder(dirname(path));
}

async function checkFreeSpace(dir: string): Promise<Finding[]> {
  const folder = await existingFolder(dir);
  const found = await statfs(folder).catch(() => undefined);
  if (found === undefined)
    return [{ name: "disk", level: "warning", text: `cannot determine the free space in ${folder}` }];
  const bytes = found.bavail * found.bsize;
  const text = `${size(bytes)} free in ${folder}`;
  if (found.files > 0 && found.ffree === 0) {
    const mend = "Remove files there: the disk has free space, but no free inodes.";
    return [bad("disk", `no more files can be created in ${folder}`, mend)];
  }
  if (bytes >= FREE_WARN_BYTES) return [good("disk", text)];
  const mend = "Free some space, or move store.dir. A full disk makes the gateway refuse new messages.";
  return [(bytes < FREE_NEEDED_BYTES ? bad : risk)("disk", text, mend)];
}

/**
 * Warns if the clock was set back: scheduled jobs would be late, and new rows would seem older than existing
 * ones.
 */
async function checkClock(cli: Cli, dir: string): Promise<Finding[]> {
  const files = ["parley.sqlite", "parley.sqlite-wal"].map((file) => join(dir, file));
  const found = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  const changed = Math.max(...found.map((one) => one?.mtimeMs ?? 0));
  const aheadMs = changed - cli.parts.world.clock.now();
  if (aheadMs < CLOCK_BACK_MS) return [];
  const seconds = Math.round(aheadMs / 1000);
  const text = `the store was last changed ${seconds} s in the future: this machine's clock is behind`;
  const mend = "Set this machine's clock: until it catches up, scheduled jobs and deadlines are late.";
  return [risk("clock", text, mend)];
}

/** Checks the configuration file, the store's directory and the files with keys. */
export async function checkFiles(cli: Cli, settings: Settings, configPath: string): Promise<Finding[]> {
  const { dir, postgresUrl } = settings.store;
  const keys = join(cli.parts.home, ".parley", "service.env");
  return [
    ...(await checkUnchangeable(configPath)),
    ...(await Promise.all([dir, join(dir, TOKEN_FILE), keys].map(checkPrivate))).flat(),
    ...(await checkFreeSpace(dir)),
    ...(postgresUrl === undefined ? await checkClock(cli, dir) : []),
  ];
}
