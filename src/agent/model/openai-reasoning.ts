// Handles the `reasoning_details` of OpenAI-compatible routers: thinking that must be sent back unchanged.
// They are stored in the signature of the thinking block, as in pi-ai.

import { isObject, jsonOf } from "../../core/json.ts";

type Json = Record<string, unknown>;

const isTextOrAbsent = (value: unknown): boolean =>
  value === undefined || value === null || typeof value === "string";

/** The name of a detail's text field, by the detail's type. */
const TEXT_OF: Readonly<Record<string, string>> = {
  "reasoning.text": "text",
  "reasoning.summary": "summary",
  "reasoning.encrypted": "data",
};

function isDetail(value: unknown): value is Json {
  if (!isObject(value)) return false;
  const { id, format, index, type, signature } = value;
  const field = TEXT_OF[String(type)];
  return (
    isTextOrAbsent(id) &&
    (format === undefined || typeof format === "string") &&
    (index === undefined || typeof index === "number") &&
    field !== undefined &&
    typeof value[field] === "string" &&
    (type !== "reasoning.text" || isTextOrAbsent(signature))
  );
}

/** Adds the details of a chunk. Adjacent pieces of text become one detail. */
export function addDetails(details: Json[], more: readonly unknown[]): void {
  for (const detail of more.filter(isDetail)) {
    const last = details.at(-1);
    const field = TEXT_OF[String(detail.type)];
    if (last === undefined || last.type !== detail.type || field === undefined || field === "data") {
      details.push({ ...detail });
      continue;
    }
    last[field] = `${String(last[field])}${String(detail[field])}`;
    if (field === "text" && detail.signature !== undefined) last.signature ||= detail.signature;
    if (detail.id !== undefined) last.id ??= detail.id;
    if (detail.format !== undefined) last.format ||= detail.format;
    if (detail.index !== undefined) last.index ??= detail.index;
  }
}

function detailsIn(signature: string | undefined): Json[] | undefined {
  const read = signature?.startsWith("[") ? jsonOf(signature) : undefined;
  return Array.isArray(read) && read.length > 0 && read.every(isDetail) ? read : undefined;
}

/** Returns the details to send back: those of the first thinking block that has any. */
export function keptDetails(signatures: readonly (string | undefined)[]): Json[] | undefined {
  return signatures.map(detailsIn).find((details) => details !== undefined);
}
