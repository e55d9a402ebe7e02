// Reads a text from standard input.

import type { CliParts } from "./parts.ts";

/** Returns the text on standard input. Stops reading after more than `charsMax` characters. */
export async function readStdin({ stdin }: Pick<CliParts, "stdin">, charsMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    if (text.length > charsMax) break;
  }
  return text;
}
