// Draws the pictures of docs/pictures: boxes, arrows and texts whose places are worked out, so that a change
// of words moves what is around them. Each has a background of its own, and colours for dark screens.

/** Of a letter, on average: fonts differ, so it is more than most need. */
const CHAR_WIDTH = 7.1;
const LINE_HEIGHT = 17;

export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

type Kind = "plain" | "soft" | "good" | "bad" | "mark";

const STYLE = `
    .paper { fill: #ffffff; } .plain { fill: #ffffff; stroke: #57606a; } .soft { fill: #f3f5f8; stroke: #8c959f; }
    .good { fill: #e6f6ea; stroke: #2da44e; } .bad { fill: #fdecec; stroke: #cf4a4a; }
    .mark { fill: #fff6da; stroke: #bf8700; } .line { stroke: #57606a; fill: none; } .life { stroke: #c3cad2; }
    .tip { fill: #57606a; } text { fill: #1f2328; } .dim { fill: #57606a; } .bold { font-weight: 600; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; } .plain { fill: #161b22; stroke: #8b949e; } .soft { fill: #1c2230; stroke: #6e7681; }
      .good { fill: #12261a; stroke: #3fb950; } .bad { fill: #2d1517; stroke: #f85149; }
      .mark { fill: #2b2410; stroke: #d29922; } .line { stroke: #8b949e; } .life { stroke: #343b44; }
      .tip { fill: #8b949e; } text { fill: #e6edf3; } .dim { fill: #9aa4af; }
    }
  `;

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export const textWidth = (text: string): number => text.length * CHAR_WIDTH;

/** The lines of a text in a column of this width; `\n` is kept. */
export function linesOf(text: string, width: number): string[] {
  const most = Math.max(8, Math.floor(width / CHAR_WIDTH));
  return text.split("\n").flatMap((paragraph) => {
    const lines: string[] = [];
    for (const word of paragraph.split(" ")) {
      const line = lines.at(-1);
      if (line !== undefined && line.length + word.length < most) lines[lines.length - 1] = `${line} ${word}`;
      else lines.push(word);
    }
    return lines;
  });
}

export const heightOf = (lines: readonly string[]): number => lines.length * LINE_HEIGHT;

export class Drawing {
  readonly #title: string;
  readonly #back: string[] = [];
  readonly #front: string[] = [];
  /** Where text stands: a test asks that no two of them overlap. */
  readonly texts: (Area & { readonly text: string })[] = [];

  /** Each stretch of a line: none may go through words. */
  readonly stretches: Area[] = [];

  constructor(title: string) {
    this.#title = title;
  }

  /** Lines of text whose first is at the top of `y`. */
  write(
    text: readonly string[],
    x: number,
    y: number,
    look: { middle?: boolean; dim?: boolean; bold?: boolean } = {},
  ): void {
    const classes = [look.dim ? "dim" : "", look.bold ? "bold" : ""].filter((one) => one !== "").join(" ");
    const anchor = look.middle ? ' text-anchor="middle"' : "";
    const style = classes === "" ? "" : ` class="${classes}"`;
    for (const [at, line] of text.entries()) {
      const top = y + at * LINE_HEIGHT;
      const width = textWidth(line);
      this.#front.push(`<text x="${x}" y="${top + 13}"${anchor}${style}>${escaped(line)}</text>`);
      this.texts.push({
        text: line,
        x: look.middle ? x - width / 2 : x,
        y: top,
        width,
        height: LINE_HEIGHT - 1,
      });
    }
  }

  rect({ x, y, width, height }: Area, kind: Kind): void {
    const shape = `x="${x}" y="${y}" width="${width}" height="${height}"`;
    this.#back.push(`<rect ${shape} rx="6" class="${kind}"/>`);
  }

  /** A box with its text in the middle; gives its area. */
  box(text: string, at: { x: number; y: number; width: number }, kind: Kind = "plain"): Area {
    const lines = linesOf(text, at.width - 20);
    const area = { ...at, height: heightOf(lines) + 16 };
    this.rect(area, kind);
    this.write(lines, at.x + at.width / 2, at.y + 8, { middle: true });
    return area;
  }

  line(
    points: readonly (readonly [number, number])[],
    look: { dashed?: boolean; arrow?: boolean; life?: boolean } = {},
  ): void {
    for (const [at, [x, y]] of points.entries()) {
      const [fromX, fromY] = points[at - 1] ?? [x, y];
      const width = Math.abs(x - fromX);
      if (at > 0)
        this.stretches.push({
          x: Math.min(x, fromX),
          y: Math.min(y, fromY),
          width,
          height: Math.abs(y - fromY),
        });
    }
    const path = points.map(([x, y], at) => `${at === 0 ? "M" : "L"}${x} ${y}`).join(" ");
    const dashes = look.dashed ? ' stroke-dasharray="5 4"' : "";
    const tip = look.arrow ? ' marker-end="url(#tip)"' : "";
    this.#back.push(`<path d="${path}" class="${look.life ? "life" : "line"}"${dashes}${tip}/>`);
  }

  done(width: number, height: number): string {
    const marker =
      '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">' +
      '<path d="M0 0L10 5L0 10z" class="tip"/></marker>';
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img"`,
      `  font-family="system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif" font-size="13">`,
      `  <title>${escaped(this.#title)}</title>`,
      `  <style>${STYLE}</style>`,
      `  <defs>${marker}</defs>`,
      `  <rect class="paper" width="${width}" height="${height}" rx="8"/>`,
      ...this.#back.map((one) => `  ${one}`),
      ...this.#front.map((one) => `  ${one}`),
      "</svg>",
      "",
    ].join("\n");
  }
}

export interface Picture {
  readonly svg: string;
  readonly width: number;
  readonly height: number;
  readonly texts: Drawing["texts"];
  /** Lines that no words may stand on; of a sequence none, whose columns run behind everything. */
  readonly lines: readonly Area[];
}
