// Describes a store for `parley store show`: its location, its content and the gateways that use it. Changes
// nothing, and does not disturb a running gateway.

import { join } from "node:path";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { ProcessRow } from "../core/shapes/process.ts";
import type { StoreSettings } from "../core/shapes/settings/settings.ts";
import type { World } from "../world.ts";
import { inspectStoreDir } from "./inspect.ts";
import { inspectPostgres } from "./postgres/inspect.ts";
import { StoreProblem } from "./problems.ts";
import { SCHEMA_VERSION } from "./schema/conversion.ts";
import { checkFile, fileFailure, sizeOf, withFile } from "./sqlite/file.ts";
import { STORE_FILE } from "./sqlite/sqlite.ts";
import { type Tally, tallyOf } from "./transfer/tally.ts";

export interface StoreFacts {
  readonly kind: "embedded" | "postgres";
  /** Path or address, without secrets. */
  readonly place: string;
  /** Schema version of the store, absent if there is no store yet. `known` is this program's version. */
  readonly schema: { readonly version?: number; readonly known: number };
  /** Absent if there is no store yet, or if this version cannot read it. */
  readonly holds?: { readonly tally: Tally; readonly bytes: number };
  /** Only for the embedded store: describes the gateway that uses it. */
  readonly use?: string;
  /** Only for PostgreSQL: the gateways that share the store, including recently stopped ones. */
  readonly processes?: readonly ProcessRow[];
}

async function showEmbedded(dir: string): Promise<Result<StoreFacts>> {
  const file = join(dir, STORE_FILE);
  const facts = { kind: "embedded", place: dir } as const;
  if (sizeOf(file) === 0) {
    return ok({ ...facts, schema: { known: SCHEMA_VERSION }, use: "it is created when a gateway starts" });
  }
  const known = checkFile(file, { whole: false });
  if (!known.ok) return known;
  const tally = await withFile(file, tallyOf);
  return ok({
    ...facts,
    schema: { version: known.value.version, known: SCHEMA_VERSION },
    holds: { tally, bytes: sizeOf(file) + sizeOf(`${file}-wal`) },
    use: inspectStoreDir(dir).text,
  });
}

async function showPostgres(url: string, world: World): Promise<Result<StoreFacts>> {
  const { place, schema, holds, processes } = await inspectPostgres(url, world, { counted: true });
  const { version, known } = schema;
  return ok({
    kind: "postgres",
    place,
    schema: { known, ...optional({ version }) },
    processes,
    ...optional({ holds }),
  });
}

/** Describes the store. Returns a failure if it is damaged or unreachable. */
export async function showStore(settings: StoreSettings, world: World): Promise<Result<StoreFacts>> {
  const { dir, postgresUrl: url } = settings;
  try {
    return await (url === undefined ? showEmbedded(dir) : showPostgres(url, world));
  } catch (error) {
    if (error instanceof StoreProblem) return fail("store_unavailable", error.message);
    const failure = fileFailure(error, join(dir, STORE_FILE));
    if (failure === undefined) throw error;
    return failure;
  }
}
