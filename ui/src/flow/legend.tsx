// Explains the marks of a chain's views.

type Marks = readonly (readonly [mark: string, name: string])[];

export const SEQUENCE: Marks = [
  ["legend-arrow kind-message", "message from a person, schedule or hook"],
  ["legend-arrow kind-send", "message between sessions, reply"],
  ["legend-arrow kind-spawn", "job"],
  ["legend-arrow kind-result dashed", "result of a job"],
  ["legend-arrow kind-wait dashed", "wait, answer"],
  ["legend-arrow kind-announce", "announcement, delivery"],
  ["legend-arrow kind-notice dashed", "notice"],
  ["legend-arrow kind-refused", "refused"],
  ["legend-arrow is-failed", "failed"],
  ["legend-bar is-queued", "queued"],
  ["legend-bar tone-busy", "run"],
  ["legend-bar tone-waiting", "run that waits"],
  ["legend-bar tone-bad", "failed run"],
  ["legend-bar is-silent", "silent: no reply"],
  ["legend-bar is-outside", "session that has read from outside"],
];

export const WATERFALL: Marks = [
  ["waterfall-mark kind-run", "run"],
  ["waterfall-mark kind-model", "model call"],
  ["waterfall-mark kind-tool", "tool call"],
  ["waterfall-mark kind-wait", "wait"],
  ["legend-bar is-queued", "queued"],
  ["waterfall-mark kind-run is-failed", "failed"],
  ["waterfall-mark kind-model is-slowest", "slowest call"],
];

/** `marks`: the class and the meaning of each. */
export function Legend({ marks }: { marks: Marks }) {
  return (
    <ul class="legend line strip small" aria-label="Legend">
      {marks.map(([mark, name]) => (
        <li key={name} class="row">
          <span class={mark} />
          {name}
        </li>
      ))}
    </ul>
  );
}
