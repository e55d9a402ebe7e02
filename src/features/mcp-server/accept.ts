// Answers every client of `/mcp` in a form that it accepts. The library refuses each request whose Accept
// header does not name JSON and event streams literally, but many clients send `*/*`, only JSON, or nothing.

import { isObject, jsonOf } from "../../core/json.ts";

const STREAM = "text/event-stream";

/** Returns whether a request accepts event streams: by name, by a wildcard, or without an Accept header. */
export function takesStreams({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  const types = accept.split(",").map((part) => (part.split(";")[0] ?? "").trim().toLowerCase());
  return accept.trim() === "" || types.some((type) => [STREAM, "text/*", "*/*"].includes(type));
}

/** Returns headers that the library accepts. */
export function acceptingAll(headers: Headers): Headers {
  const all = new Headers(headers);
  all.set("accept", `application/json, ${STREAM}`);
  return all;
}

/** Returns the answers of a stream as one JSON body. Notifications are dropped. `isList`: for a batch. */
export async function asJson(response: Response, isList: boolean): Promise<Response> {
  if (response.headers.get("content-type")?.startsWith(STREAM) !== true) return response;
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data:"));
  const messages = lines.map((line) => jsonOf(line.slice("data:".length)));
  const answers = messages.filter((message) => isObject(message) && !("method" in message));
  return Response.json(isList ? answers : answers[0], { status: response.status });
}
