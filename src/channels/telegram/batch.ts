// Owns what a batch of updates is: which are read together, and which still wait for others.
// TA1: pictures that were sent together (an album) are one message, named by the first of them. An album at
//      the end of a batch may still grow: it is left at the platform until it has stood still for a look.
// TA2: what is joined follows each other without a gap: whatever a crash leaves unconfirmed comes again and
//      is joined in the same way.

import { fieldsOf } from "../../core/json.ts";
import { numberOf } from "./fields.ts";
import { type Reader, type Reading, readUpdate } from "./update.ts";

type MessageReading = Extract<Reading, { kind: "message" }>;

/** One thing that updates say. Its last update is confirmed when it is dealt with. */
export interface Item {
  readonly firstId: number;
  readonly lastId: number;
  /** How many updates it is made of. */
  readonly parts: number;
  readonly reading: Reading;
}

/** What is known of a batch. */
export interface Batch {
  /** In the order of their ids. */
  readonly items: readonly Item[];
  /** Updates without an id: nothing can be said of them. */
  readonly nameless: number;
}

function readSafely(update: unknown, reader: Reader): Reading {
  try {
    return readUpdate(update, reader);
  } catch (error) {
    // One update that can't be read, whatever the reason, must not hold up all that follow.
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "skipped", why: `it could not be read: ${why}`, odd: true };
  }
}

function isSameAlbum(one: MessageReading, other: MessageReading): boolean {
  return (
    one.albumId !== undefined &&
    one.albumId === other.albumId &&
    one.message.chat.id === other.message.chat.id &&
    one.message.sender.id === other.message.sender.id
  );
}

function join(one: MessageReading, other: MessageReading): MessageReading {
  // Where an album was forwarded from is said once.
  const isSaid = other.message.forwarded === true && one.message.text.split("\n")[0] === other.message.text;
  const texts = [one.message.text, isSaid ? "" : other.message.text].filter((text) => text !== "");
  const quoted = one.message.quoted ?? other.message.quoted;
  return {
    ...one,
    files: [...one.files, ...other.files],
    message: {
      ...one.message,
      text: texts.join("\n"),
      mentioned: one.message.mentioned || other.message.mentioned,
      ...(quoted === undefined ? {} : { quoted }),
    },
  };
}

/** Reads the updates of one answer. */
export function readBatch(updates: readonly unknown[], reader: Reader): Batch {
  const named = updates.flatMap((update): { id: number; update: unknown }[] => {
    const id = numberOf(fieldsOf(update).update_id);
    return id === undefined ? [] : [{ id, update }];
  });
  const items: Item[] = [];
  for (const { id, update } of named.sort((one, other) => one.id - other.id)) {
    const reading = readSafely(update, reader);
    const before = items.at(-1);
    const last = before?.reading;
    if (
      before !== undefined &&
      last?.kind === "message" &&
      reading.kind === "message" &&
      isSameAlbum(last, reading)
    ) {
      const joined = join(last, reading);
      items[items.length - 1] = { ...before, lastId: id, parts: before.parts + 1, reading: joined };
    } else {
      items.push({ firstId: id, lastId: id, parts: 1, reading });
    }
  }
  return { items, nameless: updates.length - named.length };
}

/** The album at the end, which may still grow. */
export function openAlbum({ items }: Batch): Item | undefined {
  const last = items.at(-1);
  return last?.reading.kind === "message" && last.reading.albumId !== undefined ? last : undefined;
}
