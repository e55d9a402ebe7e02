// Runs the file operations inside a sandbox: reads one request from standard input and writes the answer to
// standard output. The gateway starts it inside a sandbox (files.ts), once for each call. It trusts its
// input, since a process that could forge the input could also change the files directly.

import { readFileSync, writeSync } from "node:fs";
import { FILE_OPERATIONS, type FileOperation } from "./file-operations.ts";

interface FileRequest {
  readonly name: FileOperation;
  readonly args: Record<string, unknown>;
  readonly workspace: string;
  /** Used in the names of temporary files. */
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
