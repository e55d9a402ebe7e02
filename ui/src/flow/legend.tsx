// Explains the marks of a chain's views.

const ARROWS = [
  { kind: "message", name: "message from a person, schedule or hook" },
  { kind: "send", name: "message between sessions, reply" },
  { kind: "spawn", name: "job" },
  { kind: "result", name: "result of a job", dashed: true },
  { kind: "wait", name: "wait, answer", dashed: true },
  { kind: "announce", name: "announcement, delivery" },
  { kind: "notice", name: "notice", dashed: true },
  { kind: "refused", name: "refused" },
  { kind: "is-failed", name: "failed" },
] as const;

const BARS = [
  { mark: "queued", name: "queued" },
  { mark: "running", name: "run" },
  { mark: "waits", name: "run that waits" },
  { mark: "failed", name: "failed run" },
  { mark: "silent", name: "silent: no reply" },
] as const;

const CALLS = [
  { kind: "run", name: "run" },
  { kind: "model", name: "model call" },
  { kind: "tool", name: "tool call" },
  { kind: "wait", name: "wait" },
] as const;

export function Legend({ waterfall }: { waterfall: boolean }) {
  return (
    <ul class="legend line strip small" aria-label="Legend">
      {!waterfall &&
        ARROWS.map((one) => (
          <li key={one.kind}>
            <span class={`legend-arrow kind-${one.kind}${"dashed" in one ? " dashed" : ""}`} />
            {one.name}
          </li>
        ))}
      {!waterfall &&
        BARS.map(({ mark, name }) => (
          <li key={mark}>
            <span class={`legend-bar is-${mark}`} />
            {name}
          </li>
        ))}
      {!waterfall && (
        <li>
          <svg class="legend-lane" width="8" height="16" aria-hidden="true">
            <line class="lane-outside" x1="4" x2="4" y1="0" y2="16" />
          </svg>
          session that has read from outside
        </li>
      )}
      {waterfall &&
        CALLS.map(({ kind, name }) => (
          <li key={kind}>
            <span class={`waterfall-mark kind-${kind}`} />
            {name}
          </li>
        ))}
      {waterfall && (
        <>
          <li>
            <span class="legend-bar is-queued" />
            queued
          </li>
          <li>
            <span class="waterfall-mark kind-run is-failed" />
            failed
          </li>
          <li>
            <span class="waterfall-mark kind-model is-slowest" />
            slowest call
          </li>
        </>
      )}
    </ul>
  );
}
