// Explains the marks of a chain's views.

/** The class and the meaning of each mark. */
const SEQUENCE = [
  ["legend-arrow kind-message", "message from a person, schedule or hook"],
  ["legend-arrow kind-send", "message between sessions, reply"],
  ["legend-arrow kind-spawn", "job"],
  ["legend-arrow kind-result dashed", "result of a job"],
  ["legend-arrow kind-wait dashed", "wait, answer"],
  ["legend-arrow kind-announce", "announcement, delivery"],
  ["legend-arrow kind-notice dashed", "notice"],
  ["legend-arrow kind-refused", "refused"],
  ["legend-arrow kind-is-failed", "failed"],
  ["legend-bar is-queued", "queued"],
  ["legend-bar", "run"],
  ["legend-bar is-waits", "run that waits"],
  ["legend-bar is-failed", "failed run"],
  ["legend-bar is-silent", "silent: no reply"],
] as const;

const WATERFALL = [
  ["waterfall-mark kind-run", "run"],
  ["waterfall-mark kind-model", "model call"],
  ["waterfall-mark kind-tool", "tool call"],
  ["waterfall-mark kind-wait", "wait"],
  ["legend-bar is-queued", "queued"],
  ["waterfall-mark kind-run is-failed", "failed"],
  ["waterfall-mark kind-model is-slowest", "slowest call"],
] as const;

export function Legend({ waterfall }: { waterfall: boolean }) {
  return (
    <ul class="legend line strip small" aria-label="Legend">
      {(waterfall ? WATERFALL : SEQUENCE).map(([mark, name]) => (
        <li key={name}>
          <span class={mark} />
          {name}
        </li>
      ))}
      {!waterfall && (
        <li>
          <svg width="8" height="16" aria-hidden="true">
            <line class="lane-outside" x1="4" x2="4" y1="0" y2="16" />
          </svg>
          session that has read from outside
        </li>
      )}
    </ul>
  );
}
