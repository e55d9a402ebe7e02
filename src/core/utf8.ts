// Owns where a text may be cut in UTF-8.

/** Where the first `most` bytes end, without a character of which only the beginning would be among them. */
export function wholeCharacters(bytes: Uint8Array, most: number): number {
  if (bytes.length <= most) return bytes.length;
  let end = most;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}
