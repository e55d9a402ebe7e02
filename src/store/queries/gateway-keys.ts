// Owns the table of the gateway's own keys, such as the one that signs the cards of its agents.

import type { Store } from "../sql.ts";

/** Returns the key with this name. If there is none, stores the one that `make` returns. */
export async function gatewayKey(
  store: Store,
  name: string,
  make: () => { readonly keyJson: string; readonly createdAt: number },
): Promise<string> {
  const read = () =>
    store.db.selectFrom("gateway_keys").select("key_json").where("name", "=", name).executeTakeFirst();
  const known = await read();
  if (known !== undefined) return known.key_json;
  const { keyJson, createdAt } = make();
  await store.transaction(async (tx) => {
    await tx
      .insertInto("gateway_keys")
      .values({ name, key_json: keyJson, created_at: createdAt })
      .onConflict((conflict) => conflict.column("name").doNothing())
      .execute();
  });
  // Another process may have stored its key first.
  return (await read())?.key_json ?? keyJson;
}
