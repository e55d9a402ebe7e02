// Owns one bot account at its Bot API server: calls of the API, and downloads of files. A call has one of
// four results: done, refused by the server, certainly not executed, or unknown. Results have no types; the
// code that reads them checks them (core/json.ts).
// TB2: no text that leaves this file contains the token: neither errors nor the server's own messages.
// TB4: a call that changes something uses a new connection (HX2 of exchange.ts). Only read requests, which
//      can be repeated, reuse a connection.

import { Api, type ApiClientOptions, GrammyError, HttpError } from "grammy";
import { type Exchange, type Exchanged, exchange } from "../../channels/exchange.ts";
import { fieldsOf, integerOf, jsonOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { agentFor } from "../../world/outgoing.ts";
import { timeLimit } from "../../world/pause.ts";
import type { Clock, World } from "../../world.ts";
import type { TelegramAccount } from "./telegram.ts";

/** Time limit for a call that answers immediately. */
const CALL_MS = 20_000;
/** Time limit for a call that sends a file. */
export const UPLOAD_MS = 120_000;
/** Size limit for an answer. A batch of updates has at most half of this size. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Time limit for downloading a file. */
const FILE_MS = 60_000;
const WORDS_CHARS_MAX = 200;
/** Error message for an answer that does not come from a Bot API server. */
export const NO_SERVER_WORDS = "the server is not a Bot API server";

export type Called<T> =
  | { readonly kind: "done"; readonly value: T }
  | Refusal
  /** The server has certainly not executed the call. */
  | { readonly kind: "unreached"; readonly why: string }
  /** The server may have executed the call. */
  | { readonly kind: "unknown"; readonly why: string };

/** The server refused the call. */
export interface Refusal {
  readonly kind: "refused";
  /** Error code, like an HTTP status. */
  readonly code: number;
  /** The error message from the server. */
  readonly why: string;
  /** Pause before a retry, if the server requests one. */
  readonly afterMs?: number;
  /** New id of the chat, if a group became a supergroup. */
  readonly movedTo?: string;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  /** Time limit of the call. Default: 20 s. */
  readonly timeoutMs?: number;
}

/** The library's type of an AbortSignal. */
type LibrarySignal = NonNullable<Parameters<Api["raw"]["getMe"]>[0]>;
type Work = (methods: Api["raw"], signal: LibrarySignal) => Promise<unknown>;

export interface Bot {
  readonly accountId: string;
  readonly clock: Clock;
  /** Makes one call of the API. `work` makes it with the library, and must pass the signal on. */
  call(work: Work, options?: CallOptions): Promise<Called<unknown>>;
  /** Downloads a file of at most `maxBytes`. `path`: the path that getFile returned. */
  file(path: string, maxBytes: number, signal: AbortSignal): Promise<Called<Uint8Array>>;
  close(): void;
}

/**
 * An error that carries the result of a failed request through the library, which can only pass errors on.
 */
class NotAnswered extends Error {
  readonly reached: boolean;
  constructor(why: string, reached: boolean) {
    super(why);
    this.reached = reached;
  }
}

/** Returns the answer of the server in the format that the library expects. */
function answerOf(exchanged: Exchanged): object {
  if (exchanged.kind !== "answered") throw new NotAnswered(exchanged.why, exchanged.reached);
  const { status, body } = exchanged;
  // A body that is not from the Bot API (a proxy may have answered) counts as empty: only the status is used.
  const answer = fieldsOf(jsonOf(body));
  if (answer.ok === true && status < 300) return answer;
  if (answer.ok !== false && status < 300) {
    throw new NotAnswered(NO_SERVER_WORDS, true);
  }
  const description = textOf(answer.description) ?? `HTTP status ${status}`;
  return { ...answer, ok: false, error_code: integerOf(answer.error_code) ?? status, description };
}

type LibraryFetch = NonNullable<ApiClientOptions["fetch"]>;

/** How a request is sent. With `isKept`, it uses the connection that read requests share. */
interface Transport {
  ask(
    asked: Omit<Exchange, "server" | "agent" | "purpose" | "configured">,
    isKept?: boolean,
  ): Promise<Exchanged>;
  close(): void;
}

function openTransport(apiRoot: string, clock: Clock): Transport {
  const agents = {
    kept: agentFor(apiRoot, { keepAlive: true }),
    fresh: agentFor(apiRoot, { keepAlive: false }),
  };
  return {
    ask: (asked, isKept = false) => {
      const agent = isKept ? agents.kept : agents.fresh;
      return exchange(
        { ...asked, purpose: "channel", configured: apiRoot, agent, server: "the server" },
        clock,
      );
    },
    close: () => {
      agents.kept.destroy();
      agents.fresh.destroy();
    },
  };
}

/** A request of grammY. */
interface LibraryRequest {
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

async function collectBytes(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Returns a `fetch` function for grammY, which uses only `json()` of a response. */
function fetchBy(transport: Transport): LibraryFetch {
  const call = async (url: string, init: LibraryRequest): Promise<object> => {
    const { body: given = "{}", headers = {}, signal: stop } = init;
    const isText = typeof given === "string";
    // A body with a file is collected, because the library makes only a stream of it.
    const body = isText ? given : await collectBytes(given);
    const timeoutMs = isText ? 2 * CALL_MS : 2 * UPLOAD_MS;
    const asked = { url, body, headers, timeoutMs, bytesMax: ANSWER_BYTES_MAX, ...optional({ stop }) };
    const exchanged = await transport.ask(asked, url.endsWith("/getUpdates"));
    return { json: async () => answerOf(exchanged) };
  };
  return call as unknown as LibraryFetch;
}

function refusalOf(error: GrammyError, clean: (text: string) => string): Refusal {
  const { retry_after, migrate_to_chat_id } = fieldsOf(error.parameters);
  const seconds = integerOf(retry_after);
  const movedTo = idOf(migrate_to_chat_id);
  return {
    kind: "refused",
    code: error.error_code,
    why: clean(error.description),
    ...(seconds === undefined || seconds < 0 ? {} : { afterMs: seconds * 1_000 }),
    ...optional({ movedTo }),
  };
}

export function openBot({ accountId, botToken, apiRoot }: TelegramAccount, world: World): Bot {
  const { clock } = world;
  const transport = openTransport(apiRoot, clock);
  const api = new Api(botToken, { apiRoot, fetch: fetchBy(transport) });
  const clean = (text: string): string =>
    head(safeLine(text.replaceAll(botToken, "[token]")), WORDS_CHARS_MAX);
  const failureOf = (error: unknown): Called<never> => {
    if (error instanceof GrammyError) return refusalOf(error, clean);
    const cause = error instanceof HttpError ? error.error : error;
    if (!(cause instanceof NotAnswered)) throw cause;
    return { kind: cause.reached ? "unknown" : "unreached", why: cause.message };
  };
  return {
    accountId,
    clock,
    async call(work, { signal, timeoutMs = CALL_MS } = {}) {
      using limit = timeLimit(clock, timeoutMs, { signal });
      try {
        return { kind: "done", value: await work(api.raw, limit.signal as unknown as LibrarySignal) };
      } catch (error) {
        const failure = failureOf(error);
        if (!limit.late.aborted || failure.kind === "refused") return failure;
        return { ...failure, why: `no answer within ${timeoutMs / 1_000} s` } as Called<never>;
      }
    },
    async file(path, maxBytes, signal) {
      // Encode each segment, so that a path from the server cannot leave the folder of the bot's files.
      const steps = path.split("/").map(encodeURIComponent).join("/");
      const url = `${apiRoot}/file/bot${botToken}/${steps}`;
      const asked = { url, timeoutMs: FILE_MS, bytesMax: maxBytes, stop: signal };
      const exchanged = await transport.ask(asked);
      if (exchanged.kind !== "answered") {
        return { kind: exchanged.reached ? "unknown" : "unreached", why: exchanged.why };
      }
      const { status, body } = exchanged;
      if (status === 200) return { kind: "done", value: body };
      return { kind: "refused", code: status, why: `HTTP status ${status}` };
    },
    close: () => transport.close(),
  };
}

/** Returns the id of a chat, a user or a message as text. */
export function idOf(value: unknown): string | undefined {
  const id = integerOf(value);
  return id === undefined || id === 0 ? undefined : String(id);
}
