// A pass that removes the words of deleted rows from the indexes ends, however much is written meanwhile.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Begun, SLICES_MAX, scrubSlice } from "../../../src/store/queries/transcripts/scrub.ts";
import { openStoreOn, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";

test("SC2: a pass leaves an index that had its last slice, although more was written to it", async () => {
  const store = await openStoreOn("sqlite", temporaryFolder(), quietWorld());
  const scrub = (begun?: Begun) => store.transaction((tx) => scrubSlice(tx, begun));
  let row = 0;
  const write = async (index: Begun["index"]): Promise<void> => {
    for (let segment = 0; segment < 8; segment += 1) {
      row += 1;
      const line = sql`insert into ${sql.table(index)} (rowid, text, place) values (${row}, 'a word', 'x')`;
      await store.transaction((tx) => line.execute(tx));
    }
  };
  await write("message_texts");
  await write("message_parts");
  expect(await scrub()).toEqual({ index: "message_texts", slices: 1 });
  await write("message_texts");
  expect(await scrub({ index: "message_texts", slices: 1 })).toEqual({ index: "message_texts", slices: 2 });
  await write("message_texts");
  const last = { index: "message_texts", slices: SLICES_MAX } as const;
  expect(await scrub(last)).toEqual({ index: "message_parts", slices: 1 });
  await write("message_parts");
  expect(await scrub({ ...last, index: "message_parts" })).toBeUndefined();
});
