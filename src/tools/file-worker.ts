// Owns the file operations' contained side: one operation, asked for on standard input, answered on
// standard output. The gateway starts it inside a sandbox (files.ts); it knows nothing of the one who asks.
// FW1: it is started anew for every call and trusts its input: who could forge that could do the same
//      himself.

import { readFileSync, writeSync } from "node:fs";
import { FILE_OPERATIONS, type FileOperation } from "./file-operations.ts";

interface FileRequest {
  readonly name: FileOperation;
  readonly args: Record<string, unknown>;
  readonly workspace: string;
  /** Names temporary files. */
  readonly id: string;
}

const STANDARD_INPUT = 0;
const STANDARD_OUTPUT = 1;

const request = JSON.parse(readFileSync(STANDARD_INPUT, "utf8")) as FileRequest;
const result = await FILE_OPERATIONS[request.name](
  {
    agent: { workspace: request.workspace },
    signal: new AbortController().signal,
    engine: { newId: () => request.id },
  },
  request.args,
);
const answer = Buffer.from(JSON.stringify(result));
for (let at = 0; at < answer.length; ) at += writeSync(STANDARD_OUTPUT, answer, at);
