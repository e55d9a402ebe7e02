// Copies text to the clipboard. If the page may not use the clipboard, the text is selected instead.

import { useState } from "preact/hooks";
import { Button } from "../../parts/button.tsx";

/** Copies a text, or else selects the element that shows it. Returns the new label of the button. */
export async function copyText(text: string, shown: Element | null): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    if (shown !== null) window.getSelection()?.selectAllChildren(shown);
    return "Selected";
  }
}

/** Shows a button that copies the text beside it. `name`: the name of that text for screen readers. */
export function Copy({ text, name }: { text: () => string; name: string }) {
  const [word, setWord] = useState("Copy");
  return (
    <Button
      text={word}
      class="quiet small copy"
      aria-label={word === "Copy" ? `Copy ${name}` : word}
      onClick={(event) => void copyText(text(), event.currentTarget.parentElement).then(setWord)}
    />
  );
}
