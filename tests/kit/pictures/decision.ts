// A picture of a gate: its questions in the order in which they are asked, each with the answer that ends it
// at the side, and at the bottom what is left when none did.

import { Drawing, heightOf, linesOf, type Picture } from "./svg.ts";

const MARGIN = 24;
const QUESTION = 400;
const GAP = 70;
const VERDICT = 330;

interface Question {
  readonly asks: string;
  /** The answer that ends it. The other one leads on. */
  readonly when: "yes" | "no";
  readonly means: string;
  readonly verdict: "good" | "bad";
}

export interface Gate {
  readonly title: string;
  readonly questions: readonly Question[];
  readonly else: { readonly means: string; readonly verdict: "good" | "bad" };
}

const boxHeight = (text: string, width: number): number => heightOf(linesOf(text, width - 20)) + 16;

export function drawGate({ title, questions, else: rest }: Gate): Picture {
  const drawing = new Drawing(title);
  const right = MARGIN + QUESTION + GAP;
  const middle = MARGIN + QUESTION / 2;
  drawing.write([title], MARGIN, 16, { bold: true });
  let y = 46;
  /** Where the way down begins, and what leads on. */
  let above: { readonly y: number; readonly answer: string } | undefined;
  const down = (to: number): void => {
    if (above === undefined) return;
    drawing.line(
      [
        [middle, above.y],
        [middle, to - 2],
      ],
      { arrow: true },
    );
    drawing.write([above.answer], middle + 10, above.y + 2, { dim: true });
  };
  for (const { asks, when, means, verdict } of questions) {
    const high = Math.max(boxHeight(asks, QUESTION), boxHeight(means, VERDICT));
    const centred = (height: number): number => y + (high - height) / 2;
    const question = { x: MARGIN, y: centred(boxHeight(asks, QUESTION)), width: QUESTION };
    down(question.y);
    const { height } = drawing.box(asks, question);
    drawing.box(means, { x: right, y: centred(boxHeight(means, VERDICT)), width: VERDICT }, verdict);
    const at = y + high / 2;
    drawing.line(
      [
        [MARGIN + QUESTION, at],
        [right - 2, at],
      ],
      { arrow: true },
    );
    drawing.write([when], MARGIN + QUESTION + GAP / 2, at - 19, { middle: true, dim: true });
    above = { y: question.y + height, answer: when === "yes" ? "no" : "yes" };
    y += high + 26;
  }
  down(y);
  const last = drawing.box(rest.means, { x: MARGIN, y, width: QUESTION }, rest.verdict);
  const height = last.y + last.height + 20;
  const width = right + VERDICT + MARGIN;
  return { svg: drawing.done(width, height), width, height, texts: drawing.texts, lines: drawing.stretches };
}
