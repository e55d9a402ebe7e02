// Runs the store contract with both stores.

import { deep, quick } from "../kit/deep.ts";
import { openEmbedded } from "../kit/engine/engine.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { temporaryDir } from "../store/samples.ts";
import { storeContract } from "./store.ts";

quick(storeContract)("embedded store", async () => {
  const { dir, remove } = temporaryDir();
  const store = await openEmbedded(dir);
  const dispose = async (): Promise<void> => {
    await store.close();
    remove();
  };
  return { store, dispose };
});

deep(storeContract)("PostgreSQL store", () => openPostgresStore());
