// A drop-down list.

import { safeLine } from "../../../src/core/text/safe-text.ts";

/** An option: a value that is also the text to show, or a value and its text. */
export type Option<T extends string> = T | readonly [value: T, text: string];

export function Select<T extends string>(props: {
  value: T;
  options: readonly Option<T>[];
  onPick: (value: T) => void;
  /** Name for screen readers. Required if the list has no visible label. */
  "aria-label"?: string;
  disabled?: boolean | undefined;
}) {
  const { options, onPick, ...attributes } = props;
  return (
    <select {...attributes} onChange={(event) => onPick(event.currentTarget.value as T)}>
      {options.map((option) => {
        const [value, text] = typeof option === "string" ? [option, option] : option;
        return (
          <option key={value} value={value}>
            {safeLine(text)}
          </option>
        );
      })}
    </select>
  );
}
