// A button that shows a text.

import type { ButtonHTMLAttributes, ComponentChildren } from "preact";

export function Button({ text, ...attributes }: ButtonHTMLAttributes & { text: ComponentChildren }) {
  return (
    <button type="button" {...attributes}>
      {text}
    </button>
  );
}
