// Requests files of the page.

/** Adds a link to a file to the document, by which the browser requests the file. */
export function link(rel: "modulepreload" | "stylesheet", href: string): HTMLLinkElement {
  const made = document.createElement("link");
  made.rel = rel;
  made.href = href;
  document.head.append(made);
  return made;
}
