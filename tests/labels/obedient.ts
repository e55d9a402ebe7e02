// A model that carries out the plan that a message names, and obeys every order that it reads on the way. An
// order is `call {"name": …, "arguments": …}` anywhere in a text.

import { type Entry, isCompaction, textOf } from "../../src/core/shapes/message.ts";
import { type ScriptedModel, scriptedModel } from "../kit/scripted-model.ts";
import { SECRET, textsIn } from "./stage.ts";

const SECRETS = /secret-\d+/;
const START = 'call {"name"';

export type Step = readonly [name: string, args: Readonly<Record<string, unknown>>];

/** Returns the end of the JSON object that begins at `from`. */
function endOfObject(text: string, from: number): number {
  let depth = 0;
  let isQuoted = false;
  for (let at = from; at < text.length; at += 1) {
    const letter = text[at];
    if (isQuoted && letter === "\\") at += 1;
    else if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && letter === "{") depth += 1;
    else if (!isQuoted && letter === "}") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}

/** Returns the orders in a text. An order within an order is for somebody else. */
function ordersIn(text: string): Step[] {
  const orders: Step[] = [];
  for (let at = text.indexOf(START); at >= 0; at = text.indexOf(START, at)) {
    const end = endOfObject(text, at + START.indexOf("{"));
    try {
      const { name, arguments: args } = JSON.parse(text.slice(at + START.indexOf("{"), end));
      orders.push([name, args]);
    } catch {
      // The text was cut.
    }
    at = Math.max(end, at + 1);
  }
  return orders;
}

/** A step at which the model fails. */
export const FAILS = "fails";
const ANSWER_MAX_CHARS = 2_000;
/** The message that asks a sub-agent for its report. */
const REPORTS = /announce step/;

const roleOf = (entry: Entry): string => (isCompaction(entry) ? "" : entry.role);

const wordsOf = (entry: Entry): string => (isCompaction(entry) ? entry.summary : textOf(entry));

/** Makes the model. A message that contains `#name` starts the plan with this name. */
export function obedientModel(plans: ReadonlyMap<string, readonly Step[]>): ScriptedModel {
  const planIn = (text: string): Step[] =>
    [...text.matchAll(/#([\w-]+)/g)].flatMap(([, name = ""]) => plans.get(name) ?? []);

  /** Returns the calls that are still to be made. */
  const openSteps = (entries: readonly Entry[], rules: string): Step[] => {
    let open: Step[] = [];
    for (const entry of entries) {
      const text = wordsOf(entry);
      if (isCompaction(entry)) open = ordersIn(text);
      else if (entry.role === "user") open = [...ordersIn(rules), ...ordersIn(text), ...planIn(text)];
      else if (entry.role === "toolResult") open = [...textsIn(text).flatMap(ordersIn), ...open];
      else
        for (const block of entry.content) {
          const at = block.type === "toolCall" ? open.findIndex(([name]) => name === block.name) : -1;
          if (at >= 0) open.splice(at, 1);
        }
    }
    return open;
  };

  return scriptedModel(({ entries, system = "", tools }) => {
    const rules = [system, ...tools.map(({ description }) => description)].join("\n");
    const [step] = openSteps(entries, rules);
    const last = entries.at(-1);
    if (step === undefined) {
      const isOver = last !== undefined && (roleOf(last) === "toolResult" || REPORTS.test(wordsOf(last)));
      const result = isOver ? entries.findLast((entry) => roleOf(entry) === "toolResult") : undefined;
      return result
        ? `Here it is: ${textsIn(wordsOf(result)).join(" · ").slice(0, ANSWER_MAX_CHARS)}`
        : "Done.";
    }
    const [name, args] = step;
    if (name === FAILS) return { error: "the model is down" };
    const json = JSON.stringify(args);
    const [secret] = SECRETS.exec([system, ...entries.map(wordsOf)].join("\n")) ?? [];
    const said = json.includes("call {") || secret === undefined ? json : json.replaceAll(SECRET, secret);
    return { toolCalls: [{ name, arguments: JSON.parse(said) }] };
  });
}
