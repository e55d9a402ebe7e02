// Runs every command of every document in order, and compares its output with the document. left-out.ts lists
// exceptions.

import { expect } from "vitest";
import type { Finished } from "../cli/kit.ts";
import { both, share, test } from "../kit/deep.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { PATIENCE_MS } from "../kit/until.ts";
import { Ground } from "./ground.ts";
import { LEFT_OUT, type LeftOut } from "./left-out.ts";
import { type Command, readPage, type Step } from "./page.ts";
import { PAGES, readDocument } from "./pages.ts";
import { type Scene, sceneOf } from "./scenes.ts";
import { mismatch } from "./shown.ts";

const usedEntries = new Set<LeftOut>();

function leftOut(path: string, { text }: Command): [LeftOut, RegExpExecArray] | undefined {
  for (const entry of LEFT_OUT) {
    const found = entry.pages?.includes(path) === false ? null : entry.command.exec(text);
    if (found === null) continue;
    usedEntries.add(entry);
    return [entry, found];
  }
  return undefined;
}

/** Matches commands that only read. They are repeated, because their output may take a moment to appear. */
const LOOKING = new RegExp(
  "^(?:npx parley-gateway|parley) (?:--(?:url|token) \\S+ )*" +
    "(?:may |(?:sessions|deliveries|usage|cron(?: runs)?|agents|permissions|channels(?: pair)?|node(?: pending)?)" +
    "(?= --| [^a-z]| (?:list|tree|history|show)|$))",
);
/** Time limit of a document. It suffices for the tour, which takes a reader ten minutes. */

async function withWords(scene: Scene, ground: Ground, text: string): Promise<string> {
  let said = text;
  for (const [word, stand] of Object.entries(scene.words ?? {}))
    if (new RegExp(`(?<![\\w-])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w-])`).test(said))
      said = said.replaceAll(word, await stand(ground));
  return said;
}

const begins = <T>(table: Readonly<Record<string, T>> | undefined, text: string): T | undefined =>
  Object.entries(table ?? {}).find(([beginning]) => `${text}  `.startsWith(beginning))?.[1];

/** Runs one command in the setup of its document. */
async function perform(path: string, scene: Scene, ground: Ground, command: Command): Promise<Finished> {
  const page = readPage(readDocument(path));
  await begins(scene.before, command.text)?.(ground, page);
  const skipped = leftOut(path, command);
  if (skipped !== undefined) {
    await skipped[0].instead(ground, skipped[1]);
    return { code: command.code, out: "", err: "" };
  }
  if (command.text === "npm start") {
    const out = await (scene.gateway === "mortal" ? ground.launch() : ground.start());
    return { code: 0, out, err: "" };
  }
  const elsewhere = begins(scene.elsewhere, command.text);
  if (elsewhere !== undefined) return elsewhere(command.text);
  const text = await withWords(scene, ground, command.text);
  const ready = begins(scene.lasting, command.text);
  if (ready !== undefined) return { code: 0, out: await ground.keep(text, ready), err: "" };
  return ground.run(text, begins(scene.input, command.text) ?? "");
}

/** Runs a block of commands in order. Returns the output that differs from the document. */
async function play(path: string, scene: Scene, ground: Ground, step: Step): Promise<string[]> {
  if (step.chat !== undefined) {
    const problem = await (scene.phone?.(ground, step.chat) ?? "the document has no phone");
    return problem === undefined ? [] : [`${path}:${step.line} ${problem}`];
  }
  let output = "";
  for (const command of step.commands) {
    const { code, out, err } = await perform(path, scene, ground, command);
    const at = `${path}:${command.line} ${command.text}`;
    expect({ at, code, said: code === command.code ? "" : out + err }).toEqual({
      at,
      code: command.code,
      said: "",
    });
    output += out + err;
  }
  const { shown, line } = step;
  if (shown === undefined) return [];
  const [only] = step.commands;
  const again =
    step.commands.length === 1 && only !== undefined && LOOKING.test(only.text) ? only : undefined;
  const late = Date.now() + PATIENCE_MS;
  while (again !== undefined && mismatch(shown, output) !== undefined && Date.now() < late) {
    const { out, err } = await perform(path, scene, ground, again);
    output = out + err;
  }
  const problem = mismatch(shown, output);
  return problem === undefined ? [] : [`${path}:${line} ${problem}\n\n${output}`];
}

both.each(share(["README.md"], PAGES))(
  "the documented commands of %s run, and print the documented output",
  async (path) => {
    const page = readPage(readDocument(path));
    expect(page.stray.map((line) => `${path}:${line} an output that belongs to no command`)).toEqual([]);
    if (page.steps.length === 0) return;
    const scene = sceneOf(path);
    const ground = await Ground.open(scene.env);
    cleanup(() => ground.stop());
    ground.configure((await scene.config?.(page, ground)) ?? {});
    if (scene.gateway === undefined) await ground.start();
    const problems: string[] = [];
    for (const step of page.steps) problems.push(...(await play(path, scene, ground, step)));
    expect(problems.join("\n\n")).toBe("");
  },
);

test.deep("every entry in the list of skipped commands is needed", () => {
  expect(LEFT_OUT.filter((entry) => !usedEntries.has(entry)).map(({ command }) => command)).toEqual([]);
});
