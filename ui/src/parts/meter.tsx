// Shows how much of a limit is used: a thin bar and a text.

import { FIGURES } from "./format.ts";

interface MeterProps {
  readonly name: string;
  readonly used: number;
  /** The limit. Undefined if there is no limit to show. */
  readonly max: number | undefined;
  readonly of: keyof typeof FIGURES;
}

export function Meter({ name, used, max, of }: MeterProps) {
  const { write, writeFull, unit } = FIGURES[of];
  const full = writeFull(used) + unit;
  if (max === undefined)
    return (
      <span class="meter-text" title={full}>
        {write(used) + unit}
      </span>
    );
  const text = `${write(used)} of ${write(max)}${unit}${used >= max ? ", used up" : ""}`;
  const part = max <= 0 ? 1 : Math.min(1, used / max);
  const tone = used >= max ? "tone-bad" : part > 0.8 ? "tone-warn" : "tone-busy";
  return (
    <span class={`meter ${tone}`} title={full}>
      {/* biome-ignore lint/a11y/useSemanticElements: its colours are the page's, in every browser */}
      <span
        class="meter-track"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(used, max)}
        aria-valuetext={text}
      >
        <span class="meter-part" style={{ width: `${used > 0 ? Math.max(2, part * 100) : 0}%` }} />
      </span>
      <span class="meter-text">{text}</span>
    </span>
  );
}
