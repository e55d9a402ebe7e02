// Shows how much of a limit is used: a thin bar and a text.

interface MeterProps {
  readonly name: string;
  readonly used: number;
  /** The limit. Undefined if there is no limit to show. */
  readonly max: number | undefined;
  readonly write: (figure: number) => string;
  readonly unit?: string;
}

export function Meter({ name, used, max, write, unit = "" }: MeterProps) {
  if (max === undefined) return <span class="meter-text">{`${write(used)}${unit}`}</span>;
  const text = `${write(used)} of ${write(max)}${unit}${used >= max ? ", used up" : ""}`;
  const part = max <= 0 ? 1 : Math.min(1, used / max);
  const tone = used >= max ? "tone-bad" : part > 0.8 ? "tone-warn" : "tone-busy";
  return (
    <span class={`meter ${tone}`}>
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
