// Shows labels as chips: the label and the source of a text, in words.

import "./labels.css";
import { LABELS, type Label, type Labels } from "../../../src/core/shapes/labels.ts";
import { withoutSources } from "../../../src/core/shapes/permission.ts";
import { counted } from "../parts/format.ts";
import { Lines, Name } from "../parts/name.tsx";

export function LabelChip({ label, source }: { label: Label; source: string }) {
  return (
    <Name
      as="span"
      class={`chip label-chip ${label === "outside" ? "tone-warn" : ""}`}
      text={`${label}: ${source}`}
      title={source}
    />
  );
}

export function LabelChips({ labels = {} }: { labels?: Labels | undefined }) {
  const all = LABELS.flatMap((label) => (labels[label] ?? []).map(({ source }) => ({ label, source })));
  if (all.length === 0) return null;
  return (
    <span class="label-chips">
      {all.map(({ label, source }) => (
        <LabelChip key={`${label} ${source}`} label={label} source={source} />
      ))}
    </span>
  );
}

/** A chip for each label. Private sessions get none, because nearly all work of an owner is private. */
export function StepChips({ labels = {} }: { labels?: Labels | undefined }) {
  const chips = LABELS.flatMap((label) => {
    const marks = (labels[label] ?? []).filter(
      ({ source }) => label === "outside" || !source.startsWith("session "),
    );
    const [first] = marks;
    if (first === undefined) return [];
    const source = marks.length === 1 ? first.source : counted(marks.length, "source");
    return [<LabelChip key={label} label={label} source={source} />];
  });
  return chips.length === 0 ? null : <span class="label-chips">{chips}</span>;
}

/** Shows a call that may send a text away: the whole text, and the labels of its run. */
export function Leaving({ summary, labels }: { summary: string; labels: Labels }) {
  return (
    <>
      <Lines as="code" text={withoutSources(summary)} /> <LabelChips labels={labels} />
    </>
  );
}
