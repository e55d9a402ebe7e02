// Plays many random stories of labels in a real gateway, and checks that they find each mutant.
// `node tests/labels/worker.ts --from SEED [--mutant NAME]` repeats one.

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/cleanup.ts";
import { LABEL_MUTANTS } from "./mutants.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));
const STORIES = 80;
/** Maximum number of stories in the search for a mutant. */
const SEARCHED_MAX = 60;
const WORKERS = 2;

/** Plays stories in a process. Returns its line about the first violation, or an empty text. */
async function play(from: number, count: number, cacheDir: string, mutant?: string): Promise<string> {
  const args = [WORKER, "--from", String(from), "--count", String(count)];
  const child = spawn(process.execPath, mutant === undefined ? args : [...args, "--mutant", mutant], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_COMPILE_CACHE: cacheDir },
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const [out, error, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`the worker ended with ${code}: ${error}`);
  return out;
}

test("I15, I16: labels follow text in random stories, and nothing leaves without consent", async () => {
  const cacheDir = temporaryFolder();
  const first = Number(process.env.PARLEY_SEED) % 1_000_000;
  const half = STORIES / WORKERS;
  const wrong = Array.from({ length: WORKERS }, (_, at) => play(first + at * half, half, cacheDir));
  expect(await Promise.all(wrong)).toEqual(["", ""]);
});

test("the stories find each mutant of labels", async () => {
  const cacheDir = temporaryFolder();
  const left = LABEL_MUTANTS.map(({ name }) => name);
  const missed: string[] = [];
  const search = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift())
      if ((await play(1, SEARCHED_MAX, cacheDir, name)) === "") missed.push(name);
  };
  await Promise.all(Array.from({ length: WORKERS }, search));
  expect(missed).toEqual([]);
});
