// Recognises pictures by their first bytes and not by their file names.

/** Returns the media type if every model provider accepts it, otherwise undefined. */
export function imageTypeOf(head: Buffer): string | undefined {
  const text = head.toString("latin1", 0, 12);
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  return undefined;
}
