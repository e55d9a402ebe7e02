// Reads the machine's time zone, and the date in it.
// CA1: Intl is asked only if the system does not name the zone, because it reads Node's tables of all
//      languages for any question. They take 8 MB.

import { existsSync, readlinkSync } from "node:fs";

/** The system's zone: a link to a file in a folder `zoneinfo`. */
const LOCAL = "/etc/localtime";
const ZONES = "/usr/share/zoneinfo";
/** A name like `Europe/Berlin`. Names of one word may be files of the system that are no zones. */
const PLAIN = /^[A-Za-z][\w+-]*(?:\/[\w+-]+)+$/;
const UTC = /^(?:Etc\/)?(?:UTC|UCT|GMT|Universal|Zulu|Greenwich)$/;
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

export type Calendar = ReturnType<typeof createCalendar>;

interface Zone {
  readonly name: string;
  /** True if Node's own dates are in this zone. */
  readonly isLocal: boolean;
}

function linkTarget(): string | undefined {
  try {
    return readlinkSync(LOCAL).replace(/^.*\/zoneinfo\/(?:posix\/|right\/)?/, "");
  } catch {
    return undefined;
  }
}

/** Returns the zone that the system names, or undefined if it is not certain that Node knows this zone. */
function namedZone(wanted: string | undefined): string | undefined {
  const given = wanted?.replace(/^:/, "");
  const ofSystem = given === undefined || given === LOCAL;
  const name = ofSystem ? linkTarget() : given;
  if (name === undefined) return undefined;
  if (UTC.test(name)) return "UTC";
  return PLAIN.test(name) && existsSync(ofSystem ? LOCAL : `${ZONES}/${name}`) ? name : undefined;
}

function readZone(wanted: string | undefined): Zone {
  const named = namedZone(wanted);
  if (named !== undefined) return { name: named, isLocal: true };
  const name: string | undefined = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { name: name === undefined || name === "Etc/Unknown" ? "UTC" : name, isLocal: false };
}

/** Returns the date in this zone, like `2026-11-21`. */
function dayIn({ name, isLocal }: Zone, at: Date): string {
  if (name === "UTC") return at.toISOString().slice(0, 10);
  // Swedish dates have this form.
  if (!isLocal) return at.toLocaleDateString("sv", { timeZone: name });
  const parts = [at.getFullYear(), at.getMonth() + 1, at.getDate()];
  return parts.map((part) => String(part).padStart(2, "0")).join("-");
}

/** `wanted`: returns the variable `TZ` of this process. */
export function createCalendar(wanted: () => string | undefined) {
  let known: Zone | undefined;
  const zone = (): Zone => {
    // Node, too, reads it only once.
    known ??= readZone(wanted());
    return known;
  };
  return {
    /** Returns the machine's IANA time zone, such as `Europe/Berlin`. An unknown zone is UTC. */
    timeZone: () => zone().name,
    /** Returns the date at this time in the machine's zone, like `Saturday, 2026-11-21`. */
    today(atMs: number) {
      const day = dayIn(zone(), new Date(atMs));
      return { date: `${DAYS[new Date(day).getUTCDay()]}, ${day}`, timeZone: zone().name };
    },
  };
}
