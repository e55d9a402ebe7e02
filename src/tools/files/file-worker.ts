// Runs one operation on files, reads a page or searches the web, in a process of its own: reads a request
// from standard input and writes the answer to standard output. The gateway starts it (files.ts) once for
// each call. It trusts its input, since a process that could forge the input could also change the
// files directly.

import { readFileSync, writeSync } from "node:fs";
import { fail } from "../../core/shapes/errors.ts";
import type { SearchSettings } from "../../core/shapes/settings/settings.ts";
import { fetchPage } from "../web/fetch.ts";
import { searchWeb } from "../web/search.ts";
import { FILE_OPERATIONS, type FileOperation, take } from "./file-operations.ts";
import { SEARCH_OPERATIONS } from "./search.ts";

interface FileRequest {
  readonly name: FileOperation | keyof typeof SEARCH_OPERATIONS | "take" | "fetch" | "search";
  readonly args: Record<string, unknown>;
  readonly workspace: string;
  /** Private hosts that `fetch` may read. */
  readonly allowHosts: readonly string[];
  /** Present for `search`. */
  readonly search?: SearchSettings;
  /** Used in the names of temporary files. */
  readonly id: string;
}

const STANDARD_INPUT = 0;
const STANDARD_OUTPUT = 1;

const request = JSON.parse(readFileSync(STANDARD_INPUT, "utf8")) as FileRequest;
const operations = {
  ...FILE_OPERATIONS,
  ...SEARCH_OPERATIONS,
  take,
  fetch: (_: unknown, args: Record<string, unknown>) => fetchPage(args, request.allowHosts),
  search: async (_: unknown, args: Record<string, unknown>) =>
    request.search === undefined
      ? fail("search_failed", "tools.search is not set")
      : searchWeb(args, request.search),
};
const result = await operations[request.name](
  {
    agent: { workspace: request.workspace },
    signal: new AbortController().signal,
    engine: { newId: () => request.id },
  },
  request.args,
);
const answer = Buffer.from(JSON.stringify(result));
for (let at = 0; at < answer.length; ) at += writeSync(STANDARD_OUTPUT, answer, at);
