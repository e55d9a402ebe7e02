// Writes the record of a chain as text, and reads it. A record that is torn, that was edited, or that another
// format wrote is refused.

import { createHash } from "node:crypto";
import { isObject, ownJson } from "../core/json.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { ChainRecord } from "../core/shapes/record/chain.ts";

const FORMAT = "parley-chain";
/** Version of the format. It changes if older programs could not read a record. */
const VERSION = 1;

const LISTS = [
  ...["runs", "sessions", "entries", "flows", "waits", "refusals", "deliveries", "revisions"],
] as const satisfies readonly string[];

const digestOf = (body: string): string => createHash("sha256").update(body).digest("hex");

/** Returns the record as one line of JSON, with its checksum. */
export function recordText(record: ChainRecord): { readonly text: string; readonly checksum: string } {
  const body = { format: FORMAT, version: VERSION, ...record };
  const checksum = digestOf(JSON.stringify(body));
  return { text: JSON.stringify({ ...body, checksum }), checksum };
}

function refuseRecord(why: string, hint: string): Result<never> {
  return fail("invalid_argument", `The record cannot be used: ${why}.`, { hint });
}

const EXPORT_AGAIN = "Write it again: npx parley-gateway replay CHAIN --save FILE";

/** Returns why a record has the wrong shape, although its checksum is right. */
function misshapen(body: Record<string, unknown>): string | undefined {
  if (typeof body.chainId !== "string") return "it names no chain";
  const wrong = LISTS.find(
    (name) => !Array.isArray(body[name]) || !(body[name] as unknown[]).every(isObject),
  );
  if (wrong !== undefined) return `its field "${wrong}" is not a list of objects`;
  const { runs, entries, sessions } = body as Record<string, Record<string, unknown>[]>;
  const texts = (rows: Record<string, unknown>[], names: readonly string[]): boolean =>
    rows.every((row) => names.every((name) => typeof row[name] === "string"));
  if (!texts(runs ?? [], ["runId", "sessionKey", "sessionId", "agentId", "state", "kind"]))
    return "a run has no id, session, agent or state";
  if (!(runs ?? []).every((run) => isObject(run.input) && typeof run.acceptedAt === "number"))
    return "a run has no input or no time";
  if (!(entries ?? []).every(({ entry, at }) => isObject(entry) && typeof at === "number"))
    return "an entry has no content or no time";
  if (!(sessions ?? []).every(({ session, before }) => isObject(session) && Array.isArray(before)))
    return "a session has no row";
  return undefined;
}

/** Reads a record. Fails in words if it cannot be trusted. */
export function readRecord(text: string): Result<ChainRecord> {
  const parsed = ownJson(text);
  if (!isObject(parsed)) return refuseRecord("it is torn, or it is not JSON", EXPORT_AGAIN);
  const { checksum, ...body } = parsed;
  const { format, version } = body;
  if (format !== FORMAT) return refuseRecord("it is not the record of a chain", EXPORT_AGAIN);
  if (version !== VERSION) {
    const found = JSON.stringify(version) ?? "none";
    return refuseRecord(`its version is ${found}, and this program reads version ${VERSION}`, EXPORT_AGAIN);
  }
  if (checksum !== digestOf(JSON.stringify(body))) {
    return refuseRecord("its checksum does not match: it was edited or damaged", EXPORT_AGAIN);
  }
  const wrong = misshapen(body);
  return wrong === undefined ? ok(body as unknown as ChainRecord) : refuseRecord(wrong, EXPORT_AGAIN);
}
