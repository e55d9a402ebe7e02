// Reads bodies of answers from outside, up to a limit.

/**
 * Returns the bytes of a body, or undefined if it has more than `bytesMax`. In that case the stream and its
 * connection are closed.
 */
export async function boundedBody(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
