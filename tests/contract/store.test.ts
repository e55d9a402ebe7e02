// Runs the store contract with both stores.

import { openEmbedded } from "../kit/engine/engine.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { temporaryDir } from "../store/samples.ts";
import { storeContract } from "./store.ts";

storeContract("embedded store", async () => {
  const { dir, remove } = temporaryDir();
  const store = await openEmbedded(dir);
  const dispose = async (): Promise<void> => {
    await store.close();
    remove();
  };
  return { store, dispose };
});

storeContract("PostgreSQL store", () => openPostgresStore());
