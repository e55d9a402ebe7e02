// What every store must do, on both.

import { openSqlite } from "../../src/store/sqlite.ts";
import { openPostgresStore } from "../kit/postgres.ts";
import { silentLog, temporaryDir } from "../store/samples.ts";
import { storeContract } from "./store.ts";

storeContract("embedded store", async () => {
  const { dir, remove } = temporaryDir();
  const store = await openSqlite({ dir, durability: "normal", log: silentLog });
  const dispose = async (): Promise<void> => {
    await store.close();
    remove();
  };
  return { store, dispose };
});

storeContract("PostgreSQL store", () => openPostgresStore());
