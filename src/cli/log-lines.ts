// Formats a line of the log for a terminal: time, level, part, message, fields.
// LL1: nothing in a line can move the cursor or look like another line: values are escaped, and continuation
//      lines are indented.
// LL2: a line that is not a JSON log entry is shown as it is, escaped.

import { styleText } from "node:util";
import { isObject, jsonOf } from "../core/json.ts";
import { safeJson, safeLine, safeText } from "../core/text/safe-text.ts";

type Style = "dim" | "red" | "yellow" | "green";

const LEVELS: readonly (readonly [from: number, name: string, style: Style])[] = [
  [50, "ERROR", "red"],
  [40, "WARN ", "yellow"],
  [30, "INFO ", "green"],
  [0, "DEBUG", "dim"],
];

const PART_WIDTH = 9;

/** Formats a time of day with milliseconds, in local time. */
function clockText(time: unknown): string {
  const at = new Date(typeof time === "number" ? time : Number.NaN);
  if (Number.isNaN(at.getTime())) return "--:--:--.---";
  const two = (value: number): string => String(value).padStart(2, "0");
  const millis = String(at.getMilliseconds()).padStart(3, "0");
  return `${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}.${millis}`;
}

function valueText(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return safeLine(value);
  return safeLine(safeJson(value).replace(/\n\s*/g, " "));
}

/** Formats an error. Shows the stack, which includes the message, if there is one. */
function errorText(err: unknown): string {
  const { stack, type, message, ...rest } = err as Record<string, unknown>;
  const text = typeof stack === "string" && stack !== "" ? stack : `${type ?? "Error"}: ${message ?? ""}`;
  const more = Object.keys(rest).length === 0 ? "" : `\n${safeJson(rest)}`;
  return safeText(`${text}${more}`).replace(/^/gm, "    ");
}

/** Formats a log line for people. `colours`: true if the terminal supports colours. */
export function logLine(line: string, colours: boolean): string {
  const entry = jsonOf(line);
  if (!isObject(entry) || !("level" in entry)) return `${safeLine(line.trimEnd())}\n`;
  const style = (how: Style, text: string): string =>
    colours ? styleText(how, text, { validateStream: false }) : text;
  const { level, time, part, msg, err, ...fields } = entry;
  const [, name, its] = LEVELS.find(([from]) => Number(level) >= from) ?? [0, "INFO ", "green" as const];
  const about = Object.entries(fields).map(([key, value]) => `${safeLine(key)}=${valueText(value)}`);
  const first = [
    style("dim", clockText(time)),
    style(its, name),
    safeLine(String(part ?? "-")).padEnd(PART_WIDTH),
    safeLine(String(msg ?? "")),
    ...(about.length === 0 ? [] : [style("dim", about.join(" "))]),
  ].join(" ");
  const isError = isObject(err);
  return `${first}${isError ? `\n${style("dim", errorText(err))}` : ""}\n`;
}
