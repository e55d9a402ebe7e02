// Reads the machine's time zone, and the date in it.
// CA1: Intl is asked only if the system does not name the zone, because it reads Node's tables of all
//      languages for any question. They take 8 MB.

import { existsSync, readlinkSync } from "node:fs";

const ZONES = "/usr/share/zoneinfo";
/** The system's zone: a link to a file in a folder `zoneinfo`. */
const LOCAL = "/etc/localtime";
const IN_FOLDER = /\/zoneinfo\/(?:posix\/|right\/)?([A-Za-z][\w+-]*(?:\/[\w+-]+)*)$/;
const UTC = /^(?:Etc\/)?(?:UTC|UCT|GMT|Universal|Zulu|Greenwich)$/;
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

export interface Calendar {
  /** Returns the machine's IANA time zone, such as `Europe/Berlin`. An unknown zone is UTC, as for Node. */
  timeZone(): string;
  /** Returns the date at this time in the machine's zone, like `Saturday, 2026-11-21`. */
  today(atMs: number): { readonly date: string; readonly timeZone: string };
}

function linkTarget(): string | undefined {
  try {
    return readlinkSync(LOCAL);
  } catch {
    return undefined;
  }
}

/** Returns the zone that the system names, or undefined if there is no such zone. */
function namedZone(wanted: string | undefined): string | undefined {
  const path = wanted === undefined ? linkTarget() : `${ZONES}/${wanted.replace(/^:/, "")}`;
  const name = IN_FOLDER.exec(path ?? "")?.[1];
  if (name === undefined || wanted === undefined) return name;
  return existsSync(`${ZONES}/${name}`) ? name : undefined;
}

function readZone(wanted: string | undefined): string {
  const name = namedZone(wanted) ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === undefined || name === "Etc/Unknown" || UTC.test(name) ? "UTC" : name;
}

function dateText(at: Date): string {
  const numbers = [at.getFullYear(), at.getMonth() + 1, at.getDate()];
  return `${DAYS[at.getDay()]}, ${numbers.map((part) => String(part).padStart(2, "0")).join("-")}`;
}

/** `wanted`: returns the variable `TZ` of this process. */
export function createCalendar(wanted: () => string | undefined): Calendar {
  let zone: string | undefined;
  const timeZone = (): string => {
    // Node, too, reads it only once.
    zone ??= readZone(wanted());
    return zone;
  };
  return { timeZone, today: (atMs) => ({ date: dateText(new Date(atMs)), timeZone: timeZone() }) };
}
