// Runs in the head of index.html, into which the build puts this script (vite.config.ts). Takes the token out
// of the address, and requests the first rows while the rest of that file is still on its way.

import { keptToken, takeTokenFromAddress } from "../token.ts";
import type { First } from "./draw.ts";

interface Early {
  readonly token: string;
  /** The first rows. Undefined if the gateway was unreachable, or has refused the token. */
  readonly answer: Promise<First | undefined>;
  /** The same, when they have arrived. */
  first?: First;
  /** The page has started, and draws everything from now on. */
  started?: true;
}

declare global {
  interface Window {
    early?: Early;
  }
}

async function ask(token: string): Promise<First | undefined> {
  try {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch("/page/first", { headers, priority: "high" });
    const first: First | undefined = answer.ok ? await answer.json() : undefined;
    if (first !== undefined && window.early !== undefined) window.early.first = first;
    return first;
  } catch {
    return undefined;
  }
}

takeTokenFromAddress();
const token = keptToken();
if (token !== undefined) window.early = { token, answer: ask(token) };
