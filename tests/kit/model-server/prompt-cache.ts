// The prompt of a request as a provider's cache sees it, and how much of it the provider already has.

import type { ServedRequest } from "./requests.ts";
import { type Step, usage } from "./steps.ts";

const CHARS_PER_TOKEN = 4;
/** Every name that one of the four APIs has for a part of the prompt, in the order of the cache. */
const PARTS = ["tools", "system", "systemInstruction", "instructions", "messages", "input", "contents"];

/** Returns the tool catalogue, the system prompt and each message as JSON, without the cache's own marks. */
export function promptPieces({ body }: ServedRequest): string[] {
  return PARTS.flatMap((part) => {
    const value = body[part];
    if (value === undefined) return [];
    const pieces = part === "tools" || !Array.isArray(value) ? [value] : value;
    return pieces.map((piece) =>
      JSON.stringify(piece, (key, inner) => (key === "cache_control" ? undefined : inner)),
    );
  });
}

function commonChars(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Returns the usage that a caching provider reports, when its cache has the `earlier` requests. */
export function cachedUsage(earlier: readonly ServedRequest[], request: ServedRequest): Step {
  const prompt = promptPieces(request).join("\n");
  const known = earlier.map((one) => commonChars(promptPieces(one).join("\n"), prompt));
  const cacheRead = Math.floor(Math.max(0, ...known) / CHARS_PER_TOKEN);
  return usage({ input: Math.ceil(prompt.length / CHARS_PER_TOKEN) - cacheRead, output: 20, cacheRead });
}
