// Runs at the end of index.html, into which the build puts this script (vite.config.ts). Draws the first
// rows, which early/request.ts has requested. Starts the page, whose files are requested after them, so that
// these do not take the connection that is already open. On a slow line the files arrive seconds later.

import "./early/early.css";
import { drawRows } from "./early/draw.ts";
import { link } from "./early/link.ts";
import { keptTheme, showTheme } from "./early/theme.ts";
import { DEMO_UNDER, tabStorage } from "./token.ts";

async function drawFirst(): Promise<void> {
  const first = await window.early?.answer;
  const isDemo = tabStorage()?.getItem(DEMO_UNDER) === "on";
  if (first !== undefined && window.early?.started !== true && !isDemo) drawRows(first, window.location.hash);
}

/** Starts the page as soon as its script and its style sheet have arrived. */
function startPage({ src = "", style = "" }: DOMStringMap): void {
  link("modulepreload", src).fetchPriority = "low";
  const sheet = link("stylesheet", style);
  sheet.fetchPriority = "low";
  sheet.onload = sheet.onerror = () => void import(/* @vite-ignore */ src);
}

showTheme(keptTheme());
void drawFirst();
startPage(document.currentScript?.dataset ?? {});
