// Opens the store for an import. An embedded store is opened exclusively, a shared one while gateways run on
// it. A dry run opens it read-only.

import { join } from "node:path";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { StoreSettings } from "../../core/shapes/settings/settings.ts";
import { StoreProblem } from "../../store/problems.ts";
import { SCHEMA_VERSION } from "../../store/schema/conversion.ts";
import type { Store } from "../../store/sql.ts";
import { checkFile, fileFailure, sizeOf, withFile } from "../../store/sqlite/file.ts";
import { openSqlite, STORE_FILE } from "../../store/sqlite/sqlite.ts";
import type { World } from "../../world.ts";
import type { ImportStore } from "./sessions/write-session.ts";

interface StoreLocation {
  readonly settings: StoreSettings;
  readonly world: World;
  readonly dryRun: boolean;
}

type Work = (store: ImportStore) => Promise<Result<void>>;

async function withStore(store: Store, { redactor }: World, work: Work): Promise<Result<void>> {
  try {
    return await work({ db: store.db, transaction: (write) => store.transaction(write), redactor });
  } finally {
    await store.close();
  }
}

/** Opens the store read-only. A missing store, or one that must be converted, counts as empty. */
async function lookOnly({ settings, world }: StoreLocation, work: Work): Promise<Result<void>> {
  const { dir, postgresUrl: url } = settings;
  const { redactor } = world;
  if (url !== undefined) {
    const { inspectPostgres } = await import("../../store/postgres/inspect.ts");
    const { openPostgres } = await import("../../store/postgres/postgres.ts");
    const { schema } = await inspectPostgres(url, world, { counted: false });
    if (schema.version !== schema.known) return work({ redactor });
    const store = await openPostgres({ url, world, asItIs: true, writersMax: 1, readersMax: 1 });
    return work({ db: store.db, redactor }).finally(() => store.close());
  }
  const file = join(dir, STORE_FILE);
  if (sizeOf(file) === 0) return work({ redactor });
  const known = checkFile(file, { whole: false });
  if (!known.ok) return known;
  if (known.value.version !== SCHEMA_VERSION) return work({ redactor });
  return withFile(file, (db) => work({ db, redactor }));
}

async function write({ settings, world }: StoreLocation, work: Work): Promise<Result<void>> {
  const { postgresUrl: url } = settings;
  if (url === undefined) return withStore(await openSqlite({ ...settings, log: world.log }), world, work);
  const { openPostgres } = await import("../../store/postgres/postgres.ts");
  return withStore(await openPostgres({ url, world, writersMax: 2, readersMax: 2 }), world, work);
}

/**
 * Opens the store of these settings, and calls `work` with it. Returns a failure if a person must solve a
 * problem first.
 */
export async function withImportStore(place: StoreLocation, work: Work): Promise<Result<void>> {
  const { dir } = place.settings;
  try {
    return await (place.dryRun ? lookOnly(place, work) : write(place, work));
  } catch (error) {
    if (error instanceof StoreProblem) return fail("store_unavailable", error.message);
    const failure = fileFailure(error, join(dir, STORE_FILE));
    if (failure === undefined) throw error;
    return failure;
  }
}
