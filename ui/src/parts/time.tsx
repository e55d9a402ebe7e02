// Shows a short form of a time, with the full date as a tooltip.

import type { ComponentChildren } from "preact";
import { clockTime } from "./format.ts";

export function Time(props: { at: number; class?: string; children: ComponentChildren }) {
  const { at, class: name, children } = props;
  return (
    <time class={name} dateTime={new Date(at).toISOString()} title={clockTime(at, true)}>
      {children}
    </time>
  );
}
