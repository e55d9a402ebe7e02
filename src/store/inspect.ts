// Inspects a store directory without opening the store, for `parley doctor`: checks the files and finds the
// process that uses them. Changes nothing.

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { StoreSettings } from "../core/shapes/settings/settings.ts";
import { StoreProblem } from "./problems.ts";
import { checkFile } from "./sqlite/file.ts";
import { lockForCheck } from "./sqlite/lock.ts";
import { shownObject } from "./sqlite/schema.ts";
import { compareAsStart, STORE_FILE } from "./sqlite/sqlite.ts";

export interface StoreInspection {
  readonly state: "absent" | "free" | "in_use" | "problem";
  /** Description of the state; for a problem, also how to fix it. */
  readonly text: string;
  /** Schema objects that differ from this program's schema, for example `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /**
   * Describes damaged content and how to repair it. Absent if there is no damage, or if nothing was checked.
   */
  readonly damage?: string;
}

/** Returns the problem of a directory, or of the folder in which it would be created. */
function refusalOf(dir: string): StoreProblem | undefined {
  let folder = dir;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    if (!statSync(folder).isDirectory())
      return new StoreProblem("readonly", dir, { detail: `${folder} is no folder` });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return new StoreProblem("readonly", dir, { detail: (error as Error).message });
  }
}

/** Inspects a store directory. Takes the directory's lock briefly, unless another process holds the lock. */
export function inspectStoreDir(dir: string): StoreInspection {
  const file = join(dir, STORE_FILE);
  const look = (state: StoreInspection["state"], text: string): StoreInspection => {
    const known = state === "free" || state === "in_use" ? checkFile(file, { whole: false }) : undefined;
    const differences = known?.ok === true ? known.value.differences : [];
    return { state, text, differences: differences.map((one) => `${one.kind} ${shownObject(one)}`) };
  };
  if (!existsSync(file)) {
    const refused = refusalOf(dir);
    return refused === undefined
      ? look("absent", `${file} will be created at the first start`)
      : look("problem", refused.message);
  }
  try {
    lockForCheck(dir)();
    return look("free", `${file} exists, and no gateway uses it`);
  } catch (error) {
    if (!(error instanceof StoreProblem)) throw error;
    if (error.problem !== "in_use") return look("problem", error.message);
    // A running gateway is not a problem, so the text omits the advice to stop it.
    return look("in_use", error.message.replace(error.wayOut, "").trim());
  }
}

/**
 * Returns the reason why a gateway would refuse to start on this store, or else a description of its first
 * damaged page. Returns undefined if there is no such problem. `isFree`: no gateway uses the store.
 */
function damageIn(dir: string, isFree: boolean): string | undefined {
  const file = join(dir, STORE_FILE);
  try {
    if (isFree) compareAsStart(dir);
  } catch (error) {
    if (!(error instanceof StoreProblem)) throw error;
    return error.message;
  }
  const sound = existsSync(file) ? checkFile(file, { whole: "pages" }) : undefined;
  if (sound === undefined || sound.ok) return undefined;
  return `${sound.error}. Stop the gateway, if one runs, and run npx parley-gateway store recover.`;
}

/** Inspects a store directory, runs the same checks as a starting gateway, and reads the whole store. */
export function checkStoreDir({ dir }: Pick<StoreSettings, "dir">): StoreInspection {
  const look = inspectStoreDir(dir);
  if (look.state === "problem" || !existsSync(dir)) return look;
  const damage = damageIn(dir, look.state !== "in_use");
  return damage === undefined ? look : { ...look, damage };
}
