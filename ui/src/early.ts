// Requests the first rows (first.ts) while the browser still reads index.html, into which the build puts this
// script (vite.config.ts). On a slow line the other scripts arrive seconds later.

import { keptToken, takeTokenFromAddress } from "./token.ts";

declare global {
  interface Window {
    /** The request for the first rows. `answer` is undefined if the gateway was unreachable. */
    early?: { readonly token: string; readonly answer: Promise<Response | undefined> };
  }
}

takeTokenFromAddress();
const token = keptToken();
if (token !== undefined) {
  const headers = { authorization: `Bearer ${token}` };
  window.early = { token, answer: fetch("/page/first", { headers }).catch(() => undefined) };
}
