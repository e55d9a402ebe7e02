// Loads a part of the page with all its files at once. The build puts this in place of Vite's own function
// (vite.config.ts), which also serves other browsers and other pages.

import { link } from "./early/link.ts";

const requested = new Map<string, Promise<unknown>>();

async function loadStyles(href: string): Promise<void> {
  const sheet = link("stylesheet", href);
  try {
    await new Promise((resolve, reject) => {
      sheet.onload = resolve;
      sheet.onerror = reject;
    });
  } catch {
    sheet.remove();
    requested.delete(href);
    throw new Error(`Could not load ${href}.`);
  }
}

/** Requests the files of a part, and loads it when its styles are there. */
export async function preload<T>(load: () => Promise<T>, files: readonly string[] = []): Promise<T> {
  const all = files.map((file) => {
    const href = `/${file}`;
    const known =
      requested.get(href) ??
      (href.endsWith(".css") ? loadStyles(href) : Promise.resolve(link("modulepreload", href)));
    requested.set(href, known);
    return known;
  });
  await Promise.all(all);
  return load();
}
