// Shows the short form of a time or of a cost, with the full value as a tooltip.

import { tick } from "../clock.ts";
import { age, ago, clockTime, exactMoney, money } from "./format.ts";

export function Cost({ usd, class: name }: { usd: number; class?: string }) {
  return (
    <span class={name} title={exactMoney(usd)}>
      {money(usd)}
    </span>
  );
}

/** `as`: its age, the same within a sentence, or the time of day, which is the default. */
export function Time(props: { at: number; class?: string; as?: "age" | "ago" }) {
  const { at, class: name, as } = props;
  return (
    <time class={name} dateTime={new Date(at).toISOString()} title={clockTime(at, true)}>
      {as === undefined ? clockTime(at) : { age, ago }[as](at, tick.value)}
    </time>
  );
}
