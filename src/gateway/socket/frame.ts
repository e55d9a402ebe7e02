// Parses one text message as a request frame.
// The result is safe to use: strings of bounded length, and params that are not validated yet.

import type { RequestFrame } from "../../contract/protocol.ts";
import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";

const ID_MAX_CHARS = 200;
const METHOD_MAX_CHARS = 100;

/** A frame that can't be read; `id` is the request's own if that is usable. */
interface BadFrame {
  readonly id: string;
  readonly failure: Failure;
}

function parse(text: string): Result<unknown> {
  try {
    return ok(JSON.parse(text));
  } catch {
    return fail("invalid_argument", "the message is not valid JSON");
  }
}

export function readFrame(text: string): { request: RequestFrame } | { bad: BadFrame } {
  const parsed = parse(text);
  if (!parsed.ok) return { bad: { id: "invalid", failure: parsed } };
  const frame = parsed.value;
  const own = (field: string): unknown =>
    isObject(frame) && Object.hasOwn(frame, field) ? frame[field] : undefined;
  const id = own("id");
  const usable = typeof id === "string" && id !== "" && id.length <= ID_MAX_CHARS;
  const bad = (why: string) => ({
    bad: {
      id: usable ? id : "invalid",
      failure: fail("invalid_argument", why, {
        hint: 'A request is {"type":"req","id":"…","method":"…","params":{…}}',
      }),
    },
  });
  if (!isObject(frame)) return bad("a frame must be one JSON object");
  if (own("type") !== "req") return bad('a client sends frames of type "req" only');
  if (!usable) return bad(`id must be a string of 1 to ${ID_MAX_CHARS} characters`);
  const method = own("method");
  if (typeof method !== "string" || method === "" || method.length > METHOD_MAX_CHARS) {
    return bad(`method must be a string of 1 to ${METHOD_MAX_CHARS} characters`);
  }
  const params = own("params");
  return { request: { type: "req", id, method, ...optional({ params }) } };
}
