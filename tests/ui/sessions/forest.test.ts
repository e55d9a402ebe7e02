// The data of the session list, without a browser: known sessions, and their order.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ListedRow } from "../../../src/contract/client/web.ts";
import { actionOf } from "../../../ui/src/keys/table.ts";
import { Forest, type ForestLine, TOP } from "../../../ui/src/sessions/forest.ts";
import { deedOf } from "../../../ui/src/sessions/keys.ts";
import { shiftOf } from "../../../ui/src/sessions/shift.ts";

function row(key: string, updatedAt: number, more: Partial<ListedRow> = {}): ListedRow {
  return { key, updatedAt, ...more } as ListedRow;
}

const OPEN = () => true;
const shown = (lines: readonly ForestLine[]) =>
  lines.map((line) => (line.kind === "row" ? `${" ".repeat(line.level - 1)}${line.key}` : "…"));

/** Returns a tree with sessions a and b at the top, and a1 and a2 below a. */
function smallTree(): Forest {
  const forest = new Forest(false);
  forest.add(TOP, { sessions: [row("a", 9, { children: 2 }), row("b", 8)] }, false);
  forest.add("a", { sessions: [row("a1", 5, { spawnedBy: "a" }), row("a2", 4, { spawnedBy: "a" })] }, false);
  return forest;
}

test("FO1: new data of a row is shown at once, and its position changes in `settle`", () => {
  const forest = smallTree();
  forest.learn(["b", "a2"], [row("b", 20, { label: "new" }), row("a2", 21, { spawnedBy: "a" })]);
  expect(shown(forest.lines(OPEN))).toEqual(["a", " a1", " a2", "b"]);
  expect(forest.row("b")?.label).toBe("new");
  expect(forest.unsettled()).toBe(2);
  forest.settle();
  expect(shown(forest.lines(OPEN))).toEqual(["b", "a", " a2", " a1"]);
  expect(forest.unsettled()).toBe(0);
});

test("FO3: a deleted row keeps its position until `settle`, which removes it with its children", () => {
  const forest = smallTree();
  expect(forest.learn(["a"], [])).toBe(true);
  expect(forest.lines(OPEN)).toMatchObject([{ key: "a", gone: true }, {}, {}, { key: "b", gone: false }]);
  forest.settle();
  expect(shown(forest.lines(OPEN))).toEqual(["b"]);
  expect(forest.learn(["b"], [])).toBe(false);
});

test("FO2: a new row is added to a branch that was loaded, but not to another branch or a later page", () => {
  const forest = smallTree();
  forest.add(TOP, { sessions: [row("c", 7)], nextCursor: "more" }, false);
  forest.learn(
    ["n", "a3", "b1", "old"],
    [row("n", 30), row("a3", 31, { spawnedBy: "a" }), row("b1", 32, { spawnedBy: "b" }), row("old", 1)],
  );
  forest.settle();
  expect(shown(forest.lines(OPEN))).toEqual(["n", "a", " a3", " a1", " a2", "b", "c", "…"]);
  forest.add(TOP, { sessions: [row("old", 1), row("n", 30)] }, false);
  expect(shown(forest.lines(() => false))).toEqual(["n", "a", "b", "c", "old"]);
});

test("a row at the top whose parent was deleted stays there when its data changes", () => {
  const forest = new Forest(false);
  forest.add(TOP, { sessions: [row("x", 5, { spawnedBy: "gone" }), row("y", 4)] }, false);
  forest.learn(["x", "y"], [row("x", 6, { spawnedBy: "gone" }), row("y", 7)]);
  forest.settle();
  expect(shown(forest.lines(OPEN))).toEqual(["y", "x"]);
});

test("after any updates in any order, the list is sorted newest first and contains each session once", () => {
  const keys = ["a", "b", "c", "d", "e", "f"];
  const rounds = fc.array(
    fc.record({ touched: fc.subarray(keys), gone: fc.subarray(keys), settle: fc.boolean() }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(rounds, (all) => {
      const forest = new Forest(true);
      const truth = new Map(keys.map((key, n) => [key, row(key, 10 - n)]));
      forest.add(TOP, { sessions: [...truth.values()] }, false);
      let at = 100;
      for (const { touched, gone, settle } of all) {
        for (const key of touched) truth.set(key, row(key, at++));
        for (const key of gone) truth.delete(key);
        forest.learn(
          [...touched, ...gone],
          [...new Set(touched)].flatMap((key) => truth.get(key) ?? []),
        );
        if (settle) forest.settle();
      }
      forest.settle();
      const expected = [...truth.values()]
        .toSorted((a, b) => b.updatedAt - a.updatedAt)
        .map(({ key }) => key);
      expect(shown(forest.lines(OPEN))).toEqual(expected);
    }),
  );
});

test("sessions that name each other, or themselves, as parents cause no endless loop", () => {
  const forest = new Forest(false);
  forest.add(TOP, { sessions: [row("a", 1, { children: 1 })] }, false);
  forest.add("a", { sessions: [row("a", 1, { spawnedBy: "a", children: 1 })] }, false);
  forest.add("b", { sessions: [row("b", 1, { spawnedBy: "b" })] }, false);
  expect(shown(forest.lines(OPEN))).toEqual(["a"]);
});

test("arrow keys, Home, End, Page Up and Page Down move the selection in the tree; Enter and Space select a row", () => {
  const forest = smallTree();
  const lines = forest.lines((key) => key === "a");
  const after = (key: string, at: number) => deedOf(actionOf("rows", key), lines, at, 2);
  expect(after("ArrowDown", 3)).toEqual({ kind: "move", at: 3 });
  expect(after("ArrowUp", 0)).toEqual({ kind: "move", at: 0 });
  expect(after("ArrowRight", 0)).toEqual({ kind: "move", at: 1 });
  expect(after("ArrowRight", 1)).toEqual({ kind: "move", at: 1 });
  expect(after("ArrowLeft", 2)).toEqual({ kind: "move", at: 0 });
  expect(after("ArrowLeft", 0)).toEqual({ kind: "turn", open: false });
  expect(
    deedOf(
      "open",
      forest.lines(() => false),
      0,
      2,
    ),
  ).toEqual({ kind: "turn", open: true });
  expect([after("End", 0), after("Home", 3)]).toMatchObject([{ at: 3 }, { at: 0 }]);
  expect([after("PageDown", 0), after("PageUp", 3)]).toMatchObject([{ at: 2 }, { at: 1 }]);
  expect([after("Enter", 1), after("Space", 1)]).toEqual([{ kind: "choose" }, { kind: "choose" }]);
  expect([after("j", 0), after("k", 3)]).toEqual([after("ArrowDown", 0), after("ArrowUp", 3)]);
  expect(after("x", 1)).toBeUndefined();
});

test("when rows move, the list scrolls by the distance that most of the visible rows moved", () => {
  const keyed = (text: string) => [...text].map((key) => ({ key }));
  expect(shiftOf(keyed("abcdef"), keyed("fabcde"), 1, 3)).toBe(1);
  expect(shiftOf(keyed("abcdef"), keyed("cabdef"), 2, 3)).toBe(0);
  expect(shiftOf(keyed("abcdef"), keyed("cdef"), 2, 3)).toBe(-2);
  expect(shiftOf(keyed("abc"), keyed("xyz"), 0, 3)).toBe(0);
});
