// Formats the codes and tokens of signed-in MCP clients: a kind, the id of the sign-in, a number, and a
// signature over these (`Authority.sign`). None of them is stored.

/** The kinds of texts. The number of `CODE` is 0, of `ACCESS` the time of its end, of `REFRESH` its turn. */
export const CODE = "pmc1";
export const ACCESS = "pmt1";
export const REFRESH = "pmr1";
type Kind = typeof CODE | typeof ACCESS | typeof REFRESH;

interface Sealed {
  readonly id: string;
  readonly number: number;
  /** The signed part. */
  readonly text: string;
  readonly mark: string;
}

/** Returns the part that is signed. */
export function sealedText(kind: Kind, id: string, number: number): string {
  return `${kind}.${id}.${number}`;
}

/** Splits a text of this kind. The caller checks the signature. */
export function readSealed(kind: Kind, given: string): Sealed | undefined {
  const [prefix, id, number, mark, ...rest] = given.split(".");
  if (prefix !== kind || id === undefined || mark === undefined || rest.length > 0) return undefined;
  if (number === undefined || !/^\d{1,15}$/.test(number)) return undefined;
  return { id, number: Number(number), text: sealedText(kind, id, Number(number)), mark };
}
