// Classifies errors of the database server and its driver as a conflict, a problem or a bug. The errors that
// it returns are logged, so they contain no row content and no password (I14).

import { StoreConflict, StoreProblem, type StoreProblemKind } from "../problems.ts";
import type { PostgresAddress } from "./address.ts";

/**
 * SQLSTATE codes of transactions that were certainly rolled back and can be retried immediately:
 * serialisation failure, deadlock, lock timeout, duplicate key, and a transaction that was idle for too long
 * because this process was blocked.
 */
const CONFLICTS = new Set(["40001", "40P01", "55P03", "23505", "25P03"]);

const PROBLEM_OF_CODE: ReadonlyMap<string, StoreProblemKind> = new Map([
  ["57P01", "unreachable"],
  ["57P02", "unreachable"],
  ["57P03", "unreachable"],
  ["57P05", "unreachable"],
  ["57014", "unreachable"],
  ["25006", "unreachable"],
  ["53200", "unreachable"],
  ["53300", "unreachable"],
  ["53100", "full"],
  ["57P04", "refused"],
  ["3D000", "refused"],
  ["42501", "refused"],
  ["58030", "io"],
  ["XX001", "io"],
  ["XX002", "io"],
  ["ECONNREFUSED", "unreachable"],
  ["ECONNRESET", "unreachable"],
  ["ECONNABORTED", "unreachable"],
  ["EPIPE", "unreachable"],
  ["ENOTFOUND", "unreachable"],
  ["EAI_AGAIN", "unreachable"],
  ["ETIMEDOUT", "unreachable"],
  ["EHOSTUNREACH", "unreachable"],
  ["ENETUNREACH", "unreachable"],
  ["ENOENT", "unreachable"],
  ["EACCES", "refused"],
]);

/** Messages of driver errors that have no code. */
const PROBLEM_OF_TEXT: readonly (readonly [RegExp, StoreProblemKind])[] = [
  [/^(Connection terminated|timeout expired|Query read timeout)/, "unreachable"],
  [/^Client (has encountered a connection error|was closed)/, "unreachable"],
  [/^(SASL|SCRAM)|does not support SSL|establishing an SSL connection|self-signed|certificate/, "refused"],
];

function problemOf(code: string | undefined, text: string): StoreProblemKind | undefined {
  if (code !== undefined) {
    const known = PROBLEM_OF_CODE.get(code);
    if (known !== undefined) return known;
    if (/^08...$/.test(code)) return "unreachable";
    if (/^28...$/.test(code) || /CERT|^ERR_(TLS|SSL)|SELF_SIGNED/.test(code)) return "refused";
  }
  return PROBLEM_OF_TEXT.find(([pattern]) => pattern.test(text))?.[1];
}

interface ServerError extends Error {
  readonly code?: string;
  readonly constraint?: string;
  detail?: string;
  where?: string;
}

/** Creates a store problem of this kind, without the password in its text. */
export function postgresProblem(
  problem: StoreProblemKind,
  address: PostgresAddress,
  detail: string,
): StoreProblem {
  return new StoreProblem(problem, address.place, { detail: address.mask(detail), on: "server" });
}

/**
 * Converts the error into a conflict or a store problem, and returns a bug unchanged. `otherwise` is the
 * problem for an error that matches no rule.
 */
export function asPostgresProblem(
  error: unknown,
  address: PostgresAddress,
  otherwise?: StoreProblemKind,
): unknown {
  if (!(error instanceof Error) || error instanceof StoreProblem || error instanceof StoreConflict)
    return error;
  const { code, constraint } = error as ServerError;
  const text = address.mask(
    !(error instanceof AggregateError)
      ? error.message
      : error.errors.map((one) => (one instanceof Error ? one.message : String(one))).join("; "),
  );
  if (code !== undefined && CONFLICTS.has(code)) return new StoreConflict(code, text, constraint);
  const problem = problemOf(code, text) ?? otherwise;
  if (problem !== undefined) return postgresProblem(problem, address, text);
  // The server's `detail` quotes the rejected row.
  delete (error as ServerError).detail;
  delete (error as ServerError).where;
  error.message = text;
  return error;
}
