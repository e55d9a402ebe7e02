// A picture of states and of what leads from one to another; where each stands is said by hand.

import { Drawing, type Picture } from "./svg.ts";

interface State {
  readonly x: number;
  readonly y: number;
  readonly width?: number;
  readonly text: string;
  readonly kind?: "plain" | "soft" | "good" | "bad" | "mark";
}

interface Way {
  readonly points: readonly (readonly [number, number])[];
  readonly text: string;
  /** Where its words begin. */
  readonly at: readonly [number, number];
  readonly dashed?: boolean;
}

export interface States {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly states: readonly State[];
  readonly ways: readonly Way[];
}

export function drawStates({ title, width, height, states, ways }: States): Picture {
  const drawing = new Drawing(title);
  drawing.write([title], 24, 16, { bold: true });
  for (const { points, text, at, dashed } of ways) {
    drawing.line(points, { arrow: true, ...(dashed === true ? { dashed: true } : {}) });
    drawing.write(text.split("\n"), at[0], at[1], { dim: true });
  }
  for (const { x, y, width: wide = 120, text, kind = "plain" } of states)
    drawing.box(text, { x, y, width: wide }, kind);
  return { svg: drawing.done(width, height), width, height, texts: drawing.texts, lines: drawing.stretches };
}
