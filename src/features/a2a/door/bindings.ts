// Encodes results and errors for the two bindings of A2A: JSON-RPC and HTTP+JSON.

import { A2A_CONTENT_TYPE } from "@a2a-js/sdk";
import {
  A2A_ERROR_CODE,
  A2AError,
  ERROR_INFO_TYPE,
  restStatusFor,
  toRestErrorBody,
} from "@a2a-js/sdk/errors";
import { JsonRpcTransportHandler } from "@a2a-js/sdk/server";
import { CODES, type Failure } from "../../../core/shapes/errors.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { wireError } from "../../../gateway/answer.ts";
import { dataFrame } from "../../../gateway/http/run-stream.ts";
import { Refused } from "./operations.ts";

/** One operation that a client asked for, without its binding. */
export interface Asked {
  readonly operation: string;
  readonly params: unknown;
}

/** Encodes the answers to one request. */
export interface Binding {
  /** `result`: null if there is none. `isNew`: the operation stored something new. */
  answer(result: unknown, isNew?: boolean): Response;
  refuse(error: unknown): Response;
  frame(result: unknown): string;
  failed(failure: Failure): string;
}

/** The gateway's own code of a refusal, for programs. */
function infoOf({ code, hint }: Failure): object {
  const metadata = hint === undefined ? {} : { metadata: { hint } };
  return { "@type": ERROR_INFO_TYPE, reason: code.toUpperCase(), domain: "parley", ...metadata };
}

/** A body that is no request of JSON-RPC. */
export class NoRequest extends Error {
  readonly code: number;

  constructor(problem: "PARSE_ERROR" | "INVALID_REQUEST", message: string) {
    super(message);
    this.code = A2A_ERROR_CODE[problem];
  }
}

function retryHeader({ details }: Failure): Record<string, string> {
  const after = details?.retryAfterMs;
  return typeof after === "number" ? { "retry-after": String(Math.ceil(after / 1000)) } : {};
}

/** Rethrows an error that is neither of the protocol nor a refusal: a fault of the gateway. */
function expectRefusal(error: unknown): A2AError | Failure {
  if (error instanceof Refused) return error.failure;
  if (error instanceof A2AError) return error;
  throw error;
}

/** Returns the JSON-RPC binding for the request with this id. */
export function jsonRpcBinding(id: string | number | null, redactor: Redactor): Binding {
  const head = { jsonrpc: "2.0", id };
  const errorOf = (error: A2AError | Failure): object => {
    if (error instanceof A2AError) return JsonRpcTransportHandler.mapToJSONRPCError(error);
    const { INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND } = A2A_ERROR_CODE;
    const code = CODES[error.code].http >= 500 ? INTERNAL_ERROR : INVALID_REQUEST;
    const facts = { message: wireError(error, redactor).message, data: [infoOf(error)] };
    return { code: error.code === "unknown_method" ? METHOD_NOT_FOUND : code, ...facts };
  };
  return {
    answer: (result) => Response.json({ ...head, result }),
    refuse(given) {
      if (given instanceof NoRequest) {
        const { code, message } = given;
        return Response.json({ ...head, error: { code, message } });
      }
      const error = expectRefusal(given);
      const headers = error instanceof A2AError ? {} : retryHeader(error);
      return Response.json({ ...head, error: errorOf(error) }, { headers });
    },
    frame: (result) => dataFrame({ ...head, result }),
    failed: (failure) => dataFrame({ ...head, error: errorOf(failure) }),
  };
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ALREADY_EXISTS",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

/** Returns the HTTP+JSON binding. */
export function httpJsonBinding(redactor: Redactor): Binding {
  const headers = { "content-type": A2A_CONTENT_TYPE };
  const bodyOf = (failure: Failure): object => {
    const code = CODES[failure.code].http;
    const { message } = wireError(failure, redactor);
    const status = STATUS_NAMES[code] ?? "INTERNAL";
    return { error: { code, status, message, details: [infoOf(failure)] } };
  };
  return {
    answer(result, isNew = false) {
      if (result === null) return new Response(null, { status: 204 });
      return Response.json(result, { status: isNew ? 201 : 200, headers });
    },
    refuse(given) {
      const error = expectRefusal(given);
      if (error instanceof A2AError) {
        const status = restStatusFor(error);
        return Response.json(toRestErrorBody(error, status), { status, headers });
      }
      const init = { status: CODES[error.code].http, headers: { ...headers, ...retryHeader(error) } };
      return Response.json(bodyOf(error), init);
    },
    frame: (result) => `data: ${JSON.stringify(result)}\n\n`,
    failed: (failure) => `event: error\ndata: ${JSON.stringify(bodyOf(failure))}\n\n`,
  };
}

/** The routes of the HTTP+JSON binding, below an agent's address. */
const ROUTES: readonly { method: string; path: RegExp; operation: string }[] = [
  { method: "POST", path: /^\/message:send$/, operation: "SendMessage" },
  { method: "POST", path: /^\/message:stream$/, operation: "SendStreamingMessage" },
  { method: "GET", path: /^\/tasks$/, operation: "ListTasks" },
  { method: "GET", path: /^\/tasks\/(?<id>[^/:]+)$/, operation: "GetTask" },
  { method: "POST", path: /^\/tasks\/(?<id>[^/:]+):cancel$/, operation: "CancelTask" },
  { method: "GET", path: /^\/tasks\/(?<id>[^/:]+):subscribe$/, operation: "SubscribeToTask" },
  { method: "POST", path: /^\/tasks\/(?<id>[^/:]+):subscribe$/, operation: "SubscribeToTask" },
  { method: "GET", path: /^\/extendedAgentCard$/, operation: "GetExtendedAgentCard" },
  {
    method: "POST",
    path: /^\/tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs$/,
    operation: "CreateTaskPushNotificationConfig",
  },
  {
    method: "GET",
    path: /^\/tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs$/,
    operation: "ListTaskPushNotificationConfigs",
  },
  {
    method: "GET",
    path: /^\/tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/,
    operation: "GetTaskPushNotificationConfig",
  },
  {
    method: "DELETE",
    path: /^\/tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/,
    operation: "DeleteTaskPushNotificationConfig",
  },
];

/** Numbers among the parameters of a query. */
const NUMBERS = ["historyLength", "pageSize"];
const FLAGS = ["includeArtifacts"];

function queryOf(query: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, text]) => {
      if (NUMBERS.includes(name)) return [name, Number(text)];
      return FLAGS.includes(name) ? [name, text === "true"] : [name, text];
    }),
  );
}

/**
 * Returns the operation of an HTTP+JSON request, or undefined if there is none at this path. `path`: below
 * the agent's address, decoded.
 */
export function routed(
  method: string,
  path: string,
  { query, body }: { readonly query: Readonly<Record<string, string>>; readonly body: object },
): Asked | undefined {
  for (const route of ROUTES) {
    const found = route.method === method ? route.path.exec(path) : undefined;
    if (found) return { operation: route.operation, params: { ...queryOf(query), ...body, ...found.groups } };
  }
  return undefined;
}
