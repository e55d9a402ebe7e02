// The read worker: a thread that runs slow reads of the embedded store. sqlite/read-connection.ts starts it.
// It imports few modules, because a caller waits while it starts.
// AW1: it only reads, through its own connection. Each request sees the last committed state.

import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { optional } from "../../core/optional.ts";
import { Statements } from "./statements.ts";

export interface ReadWorkerOptions {
  readonly file: string;
  readonly busyTimeoutMs: number;
  readonly cacheKib: number;
}

/** A single request. `undefined` ends the thread. */
export type ReadRequest = { readonly sql: string; readonly parameters: readonly unknown[] } | undefined;

export type ReadResponse =
  | { readonly rows: Record<string, unknown>[] }
  | {
      readonly failure: { readonly message: string; readonly code?: string; readonly errcode?: number };
    };

const { file, busyTimeoutMs, cacheKib } = workerData as ReadWorkerOptions;
let database: DatabaseSync | undefined;
let statements: Statements | undefined;

function openStatements(): Statements {
  database ??= new DatabaseSync(file, { timeout: busyTimeoutMs, enableForeignKeyConstraints: false });
  if (statements === undefined) {
    database.enableDefensive(true);
    database.exec(`pragma trusted_schema = off; pragma query_only = on; pragma cache_size = -${cacheKib}`);
    statements = new Statements(database);
  }
  return statements;
}

function answerTo({ sql, parameters }: NonNullable<ReadRequest>): ReadResponse {
  try {
    return { rows: openStatements().run(sql, parameters).rows };
  } catch (error) {
    const { message, code, errcode } = error as { message: string; code?: string; errcode?: number };
    return {
      failure: {
        message,
        ...optional({ code, errcode }),
      },
    };
  }
}

parentPort?.on("message", (question: ReadRequest) => {
  if (question === undefined) {
    database?.close();
    parentPort?.close();
  } else {
    parentPort?.postMessage(answerTo(question));
  }
});
