// Owns what the doctor finds about the places where files are: who may read or change them, room on the disk,
// and whether the clock is behind what was written.
// PC1: a place that does not exist yet is judged by the folder in which it will be made.

import { stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { octalMode, othersReach } from "../../config/file-mode.ts";
import type { Settings } from "../../core/settings.ts";
import { TOKEN_FILE } from "../../gateway/protocol.ts";
import type { Cli } from "../cli.ts";
import { size } from "../layout.ts";
import type { Finding } from "./finding.ts";

const OTHERS_WRITE = 0o022;
const ROOM_WARN_BYTES = 1024 ** 3;
const ROOM_NEEDED_BYTES = 64 * 1024 ** 2;
/** Clocks are set by a little all the time. */
const CLOCK_BACK_MS = 60_000;

/** A file or directory that only its owner should read. */
async function checkPrivate(file: string): Promise<Finding[]> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !othersReach(found.mode)) return [];
  const wanted = found.isDirectory() ? "700" : "600";
  const text = `${file} has mode ${octalMode(found.mode)}: other users of this machine may read it`;
  return [{ name: "permissions", level: "warning", text, mend: `chmod ${wanted} ${file}` }];
}

/** A file that decides what the gateway does, and the folder in which somebody could put another one. */
async function checkUnchangeable(file: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const path of [file, dirname(file)]) {
    const found = await stat(path).catch(() => undefined);
    const sticky = found?.isDirectory() === true && (found.mode & 0o1000) !== 0;
    if (found === undefined || process.platform === "win32" || sticky) continue;
    if ((found.mode & OTHERS_WRITE) === 0) continue;
    const text = `${path} has mode ${octalMode(found.mode)}: others can change what the gateway does`;
    findings.push({ name: "permissions", level: "problem", text, mend: `chmod go-w ${path}` });
  }
  return findings;
}

/** The nearest folder above that exists. */
async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined || dirname(path) === path ? path : existing(dirname(path));
}

async function checkRoom(dir: string): Promise<Finding[]> {
  const name = "disk";
  const place = await existing(dir);
  const found = await statfs(place).catch(() => undefined);
  if (found === undefined)
    return [{ name, level: "warning", text: `the room at ${place} can't be found out` }];
  const bytes = found.bavail * found.bsize;
  const text = `${size(bytes)} free at ${place}`;
  if (found.files > 0 && found.ffree === 0) {
    const mend = "Remove files there: the disk has room, but takes no further file.";
    return [{ name, level: "problem", text: `no further file can be made at ${place}`, mend }];
  }
  if (bytes >= ROOM_WARN_BYTES) return [{ name, level: "ok", text }];
  const mend = "Make room there, or move store.dir. A full disk refuses messages; what was accepted stays.";
  return [{ name, level: bytes < ROOM_NEEDED_BYTES ? "problem" : "warning", text, mend }];
}

/** A clock that was set back makes dates of the past due again late, and new rows older than old ones. */
async function checkClock(cli: Cli, dir: string): Promise<Finding[]> {
  const files = ["parley.sqlite", "parley.sqlite-wal"].map((file) => join(dir, file));
  const found = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  const changed = Math.max(...found.map((one) => one?.mtimeMs ?? 0));
  const aheadMs = changed - cli.parts.world.clock.now();
  if (aheadMs < CLOCK_BACK_MS) return [];
  const text = `the store was last changed ${Math.round(aheadMs / 1000)} s after the time that it is now`;
  const mend = "Set this machine's clock: scheduled jobs and deadlines wait until it has caught up.";
  return [{ name: "clock", level: "warning", text, mend }];
}

/** Of the configuration at `configPath`, the store's directory, and the files of keys. */
export async function checkPlaces(cli: Cli, settings: Settings, configPath: string): Promise<Finding[]> {
  const { dir, postgresUrl } = settings.store;
  const keys = join(cli.parts.home, ".parley", "service.env");
  return [
    ...(await checkUnchangeable(configPath)),
    ...(await Promise.all([dir, join(dir, TOKEN_FILE), keys].map(checkPrivate))).flat(),
    ...(await checkRoom(dir)),
    ...(postgresUrl === undefined ? await checkClock(cli, dir) : []),
  ];
}
