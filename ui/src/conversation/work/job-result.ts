// Reads the announcement of a sub-agent's result (core/rules/announcement.ts writes it). Pure.
// JR1: a text of any other form is not an announcement, and is shown unchanged.

import { optional } from "../../../../src/core/optional.ts";

interface JobResult {
  /** Outcome of the job: ok, error, timeout, aborted or unknown. */
  readonly status: string;
  readonly result: string;
  readonly notes: string;
  /** Facts that are always shown, such as the time. */
  readonly facts: readonly string[];
  /** In USD. */
  readonly cost?: number;
  /** Facts that are shown only after a click: tokens, key, id, path. */
  readonly plumbing: readonly (readonly [name: string, value: string])[];
}

const NOTHING = "(none)";
const PLUMBING = ["tokens", "session id", "session", "transcript"];

function sectionOf(label: string, lines: readonly string[]): string {
  const [first = "", ...rest] = lines;
  const text = [first.slice(label.length + 1).trim(), ...rest].join("\n").trim();
  return text === NOTHING ? "" : text;
}

/** Splits the line of statistics. Takes care that the path of the transcript may contain the separator. */
function statsOf(line: string): Pick<JobResult, "facts" | "cost" | "plumbing"> {
  const facts: string[] = [];
  const plumbing: [string, string][] = [];
  let cost: number | undefined;
  for (const part of line.slice("Stats: ".length).split(" · ")) {
    const name = PLUMBING.find((one) => part.startsWith(`${one} `));
    const last = plumbing.at(-1);
    if (name !== undefined) plumbing.push([name, part.slice(name.length + 1)]);
    else if (last?.[0] === "transcript") last[1] += ` · ${part}`;
    else if (part.startsWith("cost $")) cost = Number(part.slice("cost $".length));
    else
      facts.push(
        part
          .replace("runtime ", "")
          .replace(/(\d)([hms])/g, "$1 $2")
          .replace(/^0\.0/, "<0.1"),
      );
  }
  return { facts, plumbing, ...optional({ cost }) };
}

export function jobResultOf(text: string): JobResult | undefined {
  const lines = text.split("\n");
  const status = /^Status: ([a-z]+)$/.exec(lines[0] ?? "")?.[1];
  const notesAt = lines.findIndex((line) => line.startsWith("Notes:"));
  const stats = lines.at(-1);
  if (status === undefined || lines[1]?.startsWith("Result:") !== true || notesAt < 0) return undefined;
  if (stats?.startsWith("Stats: ") !== true) return undefined;
  return {
    status,
    result: sectionOf("Result", lines.slice(1, notesAt)),
    notes: sectionOf("Notes", lines.slice(notesAt, -1)),
    ...statsOf(stats),
  };
}
