// Serves all dialects on one address: each below the host and path of its real address. A script answers per
// model, after the checks of the dialect.

import type { IncomingMessage, ServerResponse } from "node:http";
import { serveHttp } from "../loopback.ts";
import { normalise, type ServedRequest } from "../model-server/requests.ts";
import type { Dialect } from "./dialect.ts";
import { OTHER_WRITERS } from "./other-speech.ts";
import type { Refusal } from "./overflow.ts";
import { listOf } from "./rules.ts";
import { chatDocument, chatStream, type Sent, type Speech } from "./speech.ts";

/** A request that passed the checks. `at`: its number among those of its model. */
export type Reply = (request: ServedRequest, at: number) => Speech | Refusal;

export interface Conversation {
  /** Requests that passed the checks, oldest first. */
  readonly requests: readonly ServedRequest[];
  /** Names of the rules that a request broke, or the words of the refusal, in order. */
  readonly broken: readonly string[];
}

export interface DialectServer {
  /** Returns the address of a dialect here. It contains the host of the real address. */
  baseUrl(dialect: Dialect): string;
  /** Scripts the answers of a model. */
  script(dialect: Dialect, model: string, reply: Reply): Conversation;
  close(): Promise<void>;
}

interface Scripted {
  readonly reply: Reply;
  readonly requests: ServedRequest[];
  readonly broken: string[];
}

/** Returns the path of a dialect on the server, with the host of its real address. */
const pathOf = ({ id, baseUrl }: Dialect): string => `/${id}/${baseUrl.replace(/^https?:\/\//, "")}`;

export async function startDialectServer(dialects: readonly Dialect[]): Promise<DialectServer> {
  const scripts = new Map<string, Scripted>();
  const { origin, close } = await serveHttp((incoming, outgoing) => {
    serve(incoming, outgoing, dialects, scripts).catch((error: unknown) => {
      outgoing.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  return {
    baseUrl: (dialect) => origin + pathOf(dialect),
    script: (dialect, model, reply) => {
      const scripted = { reply, requests: [], broken: [] };
      scripts.set(`${dialect.id}/${model}`, scripted);
      return scripted;
    },
    close,
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  dialects: readonly Dialect[],
  scripts: ReadonlyMap<string, Scripted>,
): Promise<void> {
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  const path = incoming.url ?? "";
  const dialect = dialects.find((one) => path.startsWith(`${pathOf(one)}/`));
  if (dialect === undefined || incoming.method !== "POST") {
    outgoing
      .writeHead(404, { "content-type": "application/json" })
      .end('{"error":{"message":"no such path"}}');
    return;
  }
  const gone = new Promise<void>((resolve) => outgoing.on("close", () => resolve()));
  const body = JSON.parse(text) as Record<string, unknown>;
  const request = normalise(dialect.api, path, body, incoming.headers, gone);
  const scripted = scripts.get(`${dialect.id}/${request.model}`);
  if (scripted === undefined) return refuse(outgoing, 404, dialect.word(`no model ${request.model}`, 404));
  const { headers } = incoming;
  const messages = dialect.api === "openai-completions" ? listOf(body.messages) : [];
  for (const { name, status, check, isByWords = false } of dialect.rules) {
    const words = check({ body, messages, headers });
    if (words === undefined) continue;
    scripted.broken.push(isByWords ? words : name);
    return refuse(outgoing, status, dialect.word(words, status));
  }
  scripted.requests.push(request);
  const answer = scripted.reply(request, scripted.requests.length - 1);
  if ("status" in answer) return refuse(outgoing, answer.status, answer.body);
  // Ids of calls differ in one session.
  const first = 10 * (scripted.requests.length - 1);
  if (answer.form === "json") return refuse(outgoing, 200, documentOf(dialect, answer, request.model, first));
  const { pieces, isOpen } = streamOf(dialect, answer, request.model, first);
  outgoing.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const piece of pieces) outgoing.write(piece);
  if (!isOpen) outgoing.end();
}

export function streamOf({ api, style = {} }: Dialect, speech: Speech, model: string, first: number): Sent {
  return api === "openai-completions"
    ? chatStream(speech, style, model, first)
    : OTHER_WRITERS[api].stream(speech, model, first);
}

function documentOf({ api, style = {} }: Dialect, speech: Speech, model: string, first: number): unknown {
  return api === "openai-completions"
    ? chatDocument(speech, style, model, first)
    : OTHER_WRITERS[api].document(speech, model, first);
}

/** Sends an error, or another JSON document. A text is sent as HTML. */
function refuse(outgoing: ServerResponse, status: number, body: unknown): void {
  const isText = typeof body === "string";
  outgoing
    .writeHead(status, { "content-type": isText ? "text/html" : "application/json" })
    .end(isText ? body : JSON.stringify(body));
}
