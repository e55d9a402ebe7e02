// Checks that the definition of each table says what the deletion of a session does with its texts.

import { expect, test } from "vitest";
import { id, type Table, table, text } from "../../src/store/schema/definition.ts";
import { TABLES } from "../../src/store/schema/tables.ts";

/** Returns the texts about which the definitions say nothing, or two things. */
function unclear(tables: Readonly<Record<string, Table>>): string[] {
  return Object.entries(tables).flatMap(([name, { columns, rules }]) => {
    if (rules.removed !== undefined) return [];
    const { blanked = [], blankedByQuery = [], kept = [] } = rules;
    const places = [new Set(blanked.flatMap((one) => Object.keys(one.columns))), blankedByQuery, kept];
    const said = places.flatMap((columns) => [...columns]);
    return Object.keys(columns)
      .filter((column) => columns[column]?.type === "text")
      .filter((column) => said.filter((one) => one === column).length !== 1)
      .map((column) => `${name}.${column}`);
  });
}

test("each text is removed, blanked or kept when its session is deleted", () => {
  expect(unclear(TABLES)).toEqual([]);
  const diary = table({ id, session_key: id, day: text, night: text }, { key: ["id"], kept: ["night"] });
  const notes = table({ id, body: text }, { key: ["id"], kept: ["body"], blankedByQuery: ["body"] });
  expect(unclear({ diary, notes })).toEqual(["diary.day", "notes.body"]);
});

test("rows that go with a session, and values that its deletion blanks, are found by an existing column", () => {
  const unknown = Object.entries<Table>(TABLES).flatMap(([name, { columns, rules }]) => {
    const { removed, blanked = [], blankedByQuery = [], kept = [], key = [] } = rules;
    const named = blanked.flatMap((one) => [one.of, ...Object.keys(one.columns)]);
    const all = [
      ...named,
      ...blankedByQuery,
      ...kept,
      ...key,
      ...(removed === undefined ? [] : [removed.of]),
    ];
    return all.filter((column) => columns[column] === undefined).map((column) => `${name}.${column}`);
  });
  expect(unknown).toEqual([]);
});
