// Lists what a check of the configuration says.

import { Lines } from "../parts/name.tsx";

export function Notes(props: { title: string; tone?: "bad" | "warn"; lines: readonly string[] }) {
  const { title, tone = "warn", lines } = props;
  if (lines.length === 0) return null;
  return (
    <section class={`note tone-${tone} config-said`}>
      <strong>{title}</strong>
      <ul class="bullets">
        {lines.map((line) => (
          <li key={line}>
            <Lines class="raw" text={line} />
          </li>
        ))}
      </ul>
    </section>
  );
}
