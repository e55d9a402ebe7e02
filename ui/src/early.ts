// Runs at the end of index.html, into which the build puts this script (vite.config.ts). Requests the first
// rows, then the files of the page, so that these do not take the connection that is already open. Draws the
// rows. On a slow line the files arrive seconds later.

import "./early/early.css";
import { drawRows, type First } from "./early/draw.ts";
import { link } from "./early/link.ts";
import { keptTheme, showTheme } from "./early/theme.ts";
import { DEMO_UNDER, keptToken, tabStorage, takeTokenFromAddress } from "./token.ts";

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
    if (first === undefined || window.early === undefined) return undefined;
    window.early.first = first;
    const isDemo = tabStorage()?.getItem(DEMO_UNDER) === "on";
    if (window.early.started !== true && !isDemo) drawRows(first, window.location.hash);
    return first;
  } catch {
    return undefined;
  }
}

/** Starts the page as soon as its script and its style sheet have arrived. */
function startPage({ src = "", style = "" }: DOMStringMap): void {
  link("modulepreload", src).fetchPriority = "low";
  const sheet = link("stylesheet", style);
  sheet.fetchPriority = "low";
  sheet.onload = sheet.onerror = () => void import(/* @vite-ignore */ src);
}

showTheme(keptTheme());
takeTokenFromAddress();
const token = keptToken();
if (token !== undefined) window.early = { token, answer: ask(token) };
startPage(document.currentScript?.dataset ?? {});
