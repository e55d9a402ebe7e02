// Owns grouping a batch of updates: which are read together, and which wait for others.
// TA1: pictures that were sent together (an album) are one message with the id of the first. An album at
//      the end of a batch may still grow: it stays at the platform until one poll finds it unchanged.
// TA2: joined updates are consecutive, so updates that a crash leaves unconfirmed are joined the same
//      way again.

import { fieldsOf, integerOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { type Reading, readUpdate, type TelegramAccountContext } from "./update.ts";

type MessageReading = Extract<Reading, { kind: "message" }>;

/** One message or event from updates. Its last update is confirmed when it is processed. */
export interface Item {
  readonly firstId: number;
  readonly lastId: number;
  /** Number of its updates. */
  readonly parts: number;
  readonly reading: Reading;
}

/** Content of a batch. */
export interface Batch {
  /** Sorted by id. */
  readonly items: readonly Item[];
  /** Number of updates without an id, which are skipped. */
  readonly nameless: number;
}

function readSafely(update: unknown, reader: TelegramAccountContext): Reading {
  try {
    return readUpdate(update, reader);
  } catch (error) {
    // An unreadable update must not block later ones.
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
  // The source of a forwarded album is shown once.
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
      ...optional({ quoted }),
    },
  };
}

/** Reads the updates of one response. */
export function readBatch(updates: readonly unknown[], reader: TelegramAccountContext): Batch {
  const named = updates.flatMap((update): { id: number; update: unknown }[] => {
    const id = integerOf(fieldsOf(update).update_id);
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

/** Returns the album at the end, which may still grow. */
export function openAlbum({ items }: Batch): Item | undefined {
  const last = items.at(-1);
  return last?.reading.kind === "message" && last.reading.albumId !== undefined ? last : undefined;
}
