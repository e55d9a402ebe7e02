// A picture of what happens in which order: who does something in columns, time downwards. What one
// transaction writes stands in one numbered band, so that a text can say what a crash between two of them
// leaves.

import { Drawing, heightOf, linesOf, type Picture, textWidth } from "./svg.ts";

const MARGIN = 24;
const COLUMN = 205;
const HEAD = 40;

export type Step =
  /** A message from one column to another. */
  | { readonly from: number; readonly to: number; readonly say: string; readonly back?: boolean }
  /** Something that a column does. */
  | { readonly at: number; readonly does: string }
  /** One transaction, over the columns whose rows it writes. */
  | { readonly commit: number; readonly over: readonly [number, number]; readonly writes: string };

export interface Sequence {
  readonly title: string;
  readonly columns: readonly string[];
  readonly steps: readonly Step[];
}

export function drawSequence({ title, columns, steps }: Sequence): Picture {
  const drawing = new Drawing(title);
  const middle = (column: number): number => MARGIN + column * COLUMN + COLUMN / 2;
  const width = 2 * MARGIN + columns.length * COLUMN;
  drawing.write([title], MARGIN, 16, { bold: true });
  const headTop = 44;
  let y = headTop + HEAD + 18;
  const after: (() => void)[] = [];
  for (const step of steps) {
    if ("say" in step) {
      const [left, right] = [Math.min(step.from, step.to), Math.max(step.from, step.to)];
      const room = (right - left) * COLUMN - 16;
      const lines = linesOf(step.say, room);
      const top = y;
      const at = y + heightOf(lines) + 4;
      after.push(() => {
        drawing.write(lines, (middle(left) + middle(right)) / 2, top, { middle: true });
        const look = { arrow: true, ...(step.back === true ? { dashed: true } : {}) };
        const [start, end] = [middle(step.from), middle(step.to)];
        drawing.line(
          [
            [start, at],
            [end - Math.sign(end - start) * 2, at],
          ],
          look,
        );
      });
      y = at + 16;
    } else if ("does" in step) {
      const lines = linesOf(step.does, COLUMN - 40);
      const wide = Math.min(COLUMN - 16, Math.max(...lines.map(textWidth)) + 20);
      const box = { x: middle(step.at) - wide / 2, y, width: wide };
      after.push(() => drawing.box(lines.join("\n"), box, "soft"));
      y += heightOf(lines) + 16 + 14;
    } else {
      const [first, last] = step.over;
      const x = middle(first) - COLUMN / 2 + 8;
      const wide = (last - first + 1) * COLUMN - 16;
      const lines = linesOf(`${step.commit}  ${step.writes}`, wide - 24);
      const box = { x, y, width: wide };
      after.push(() => drawing.box(lines.join("\n"), box, "mark"));
      y += heightOf(lines) + 16 + 14;
    }
  }
  const bottom = y + 4;
  for (const [at, name] of columns.entries()) {
    drawing.line(
      [
        [middle(at), headTop + HEAD],
        [middle(at), bottom],
      ],
      { life: true },
    );
    drawing.box(name, { x: middle(at) - COLUMN / 2 + 10, y: headTop, width: COLUMN - 20 }, "plain");
  }
  for (const draw of after) draw();
  const height = bottom + 14;
  return { svg: drawing.done(width, height), width, height, texts: drawing.texts, lines: [] };
}
