// Reduces the file size of a screenshot with a palette of its 256 most important colours and the best
// compression. Text stays sharp, because frequent colours are kept and only rare ones are replaced by similar
// ones.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 256;
/**
 * Number of high bits per channel. Colours with the same high bits form a group. The most frequent colour of
 * each group enters the palette before other rare colours.
 */
const NEAR_BITS = 3;

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** One number for each pixel: red, green and blue. */
  readonly colours: Uint32Array;
}

function* chunksOf(png: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield {
      type: png.toString("latin1", at + 4, at + 8),
      data: png.subarray(at + 8, at + 8 + length),
    };
    at += length + 12;
  }
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

/** Reverts the PNG filter of each row, in place. */
function unfilter(raw: Buffer, width: number, height: number, step: number): Buffer {
  const rowBytes = width * step;
  const out = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (rowBytes + 1)] ?? 0;
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x;
      const left = x >= step ? (out[at - step] ?? 0) : 0;
      const above = y > 0 ? (out[at - rowBytes] ?? 0) : 0;
      const corner = x >= step && y > 0 ? (out[at - rowBytes - step] ?? 0) : 0;
      const add = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter] ?? 0;
      out[at] = (raw[y * (rowBytes + 1) + 1 + x] ?? 0) + add;
    }
  }
  return out;
}

/** Decodes a screenshot. Returns undefined for kinds of PNG that browsers don't write. */
function readPng(png: Buffer): Pixels | undefined {
  const chunks = [...chunksOf(png)];
  const head = chunks[0]?.data;
  if (head === undefined || head[8] !== 8 || (head[9] !== 2 && head[9] !== 6) || head[12] !== 0)
    return undefined;
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const step = head[9] === 2 ? 3 : 4;
  const packed = Buffer.concat(chunks.flatMap(({ type, data }) => (type === "IDAT" ? [data] : [])));
  const bytes = unfilter(inflateSync(packed), width, height, step);
  const colours = new Uint32Array(width * height);
  for (let at = 0; at < colours.length; at++) colours[at] = bytes.readUIntBE(at * step, 3);
  return { width, height, colours };
}

function distance(one: number, other: number): number {
  const parts = [16, 8, 0].map((shift) => ((one >> shift) & 255) - ((other >> shift) & 255));
  return parts.reduce((sum, part) => sum + part * part, 0);
}

/** Chooses the most frequent colours, then frequent colours that differ strongly from those. */
function paletteOf(colours: Uint32Array): { palette: number[]; indexOf: (colour: number) => number } {
  const count = new Map<number, number>();
  for (const colour of colours) count.set(colour, (count.get(colour) ?? 0) + 1);
  const ranked = [...count].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const near = (colour: number): number => colour & (0x010101 * (256 - 2 ** (8 - NEAR_BITS)));
  const firsts = new Map(ranked.toReversed().map((colour) => [near(colour), colour]));
  const common = ranked.slice(0, COLOURS_MAX / 2);
  const palette = [...new Set([...common, ...firsts.values(), ...ranked])].slice(0, COLOURS_MAX);
  const known = new Map(palette.map((colour, index) => [colour, index]));
  const indexOf = (colour: number): number => {
    const found = known.get(colour);
    if (found !== undefined) return found;
    let best = 0;
    for (let index = 1; index < palette.length; index++) {
      if (distance(colour, palette[index] ?? 0) < distance(colour, palette[best] ?? 0)) best = index;
    }
    known.set(colour, best);
    return best;
  };
  return { palette, indexOf };
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** Returns the picture in fewer bytes, or unchanged if that saves nothing. */
export function smallPng(png: Buffer): Buffer {
  const pixels = readPng(png);
  if (pixels === undefined) return png;
  const { width, height, colours } = pixels;
  const { palette, indexOf } = paletteOf(colours);
  const rows = Buffer.alloc((width + 1) * height);
  for (let at = 0; at < colours.length; at++) {
    const y = Math.floor(at / width);
    rows[y * (width + 1) + 1 + (at % width)] = indexOf(colours[at] ?? 0);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const small = Buffer.concat([
    SIGNATURE,
    chunk("IHDR", head),
    chunk("PLTE", table),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
  return small.length < png.length ? small : png;
}
