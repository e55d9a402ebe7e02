// Inspects a store directory from outside, for the doctor: its files, and the process that holds it. Changes
// nothing.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { StoreSettings } from "../core/shapes/settings/settings.ts";
import { StoreProblem } from "./problems.ts";
import { checkFile } from "./sqlite/file.ts";
import { lockStore } from "./sqlite/lock.ts";
import { shownObject } from "./sqlite/schema.ts";
import { compareAsStart, STORE_FILE } from "./sqlite/sqlite.ts";

export interface StoreInspection {
  readonly state: "absent" | "free" | "in_use" | "problem";
  /** Text for people, with the remedy of a problem. */
  readonly text: string;
  /** Objects of the schema that differ from this program's schema, as `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** Damaged content and its remedy. Absent: no damage, or not checked. */
  readonly damage?: string;
}

/** Returns the differences; none if the file cannot be read as a store, which the text then explains. */
function differencesOf(file: string): string[] {
  const known = checkFile(file, { whole: false });
  return known.ok ? known.value.differences.map((one) => `${one.kind} ${shownObject(one)}`) : [];
}

/** Inspects a store directory. Holds its lock for a moment if no other process does. */
export function inspectStoreDir(dir: string): StoreInspection {
  const file = join(dir, STORE_FILE);
  const look = (state: StoreInspection["state"], text: string): StoreInspection => ({
    state,
    text,
    differences: state === "free" || state === "in_use" ? differencesOf(file) : [],
  });
  if (!existsSync(file)) return look("absent", `${file} is made at the first start`);
  try {
    lockStore(dir)();
    return look("free", `${file} exists, and no gateway holds it`);
  } catch (error) {
    if (!(error instanceof StoreProblem)) throw error;
    if (error.problem !== "in_use") return look("problem", error.message);
    // A running gateway is no problem, so its remedy is left out.
    return look("in_use", error.message.replace(error.wayOut, "").trim());
  }
}

/** Returns why a start would refuse the store, or the first damaged page; undefined: no damage. */
function damageIn(settings: Pick<StoreSettings, "dir" | "durability">, isFree: boolean): string | undefined {
  const file = join(settings.dir, STORE_FILE);
  try {
    if (isFree) compareAsStart(settings);
  } catch (error) {
    if (!(error instanceof StoreProblem)) throw error;
    return error.message;
  }
  const sound = existsSync(file) ? checkFile(file, { whole: "pages" }) : undefined;
  if (sound === undefined || sound.ok) return undefined;
  return `${sound.error}. Stop the gateway, if one runs, and run parley store recover.`;
}

/** Inspects a store directory, makes the checks of a start, and reads the whole store. */
export function checkStoreDir(settings: Pick<StoreSettings, "dir" | "durability">): StoreInspection {
  const look = inspectStoreDir(settings.dir);
  if (look.state === "problem" || !existsSync(settings.dir)) return look;
  const damage = damageIn(settings, look.state !== "in_use");
  return damage === undefined ? look : { ...look, damage };
}
