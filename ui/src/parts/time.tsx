// Shows the short form of a time or of a cost, with the full value as a tooltip.

import type { ComponentChildren } from "preact";
import { clockTime, exactMoney, money } from "./format.ts";

export function Cost({ usd, class: name }: { usd: number; class?: string }) {
  return (
    <span class={name} title={exactMoney(usd)}>
      {money(usd)}
    </span>
  );
}

export function Time(props: { at: number; class?: string; children: ComponentChildren }) {
  const { at, class: name, children } = props;
  return (
    <time class={name} dateTime={new Date(at).toISOString()} title={clockTime(at, true)}>
      {children}
    </time>
  );
}
