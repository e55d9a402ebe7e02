// Shows loading and failures as text, so that the page is never blank. With a failure it shows a button to
// retry.

import { Component, type ComponentChildren } from "preact";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { wordsOf } from "../gateway.ts";
import { Button } from "./button.tsx";

/** Shows an error. With `onRetry`, also shows a button to retry. */
export function Failed({ problem, onRetry }: { problem: unknown; onRetry?: () => void }) {
  return (
    <div class="failed" role="alert">
      <p>
        <bdi>{safeText(wordsOf(problem))}</bdi>
      </p>
      {onRetry && <Button text="Retry" onClick={onRetry} />}
    </div>
  );
}

/** Shows `words` until there is a `value`. If the last read failed, shows the error and a button to retry. */
export function Awaited(props: { value?: unknown; problem: unknown; again: () => void; words?: string }) {
  const { value, problem, again, words = "Loading…" } = props;
  if (problem !== undefined) return <Failed problem={problem} onRetry={again} />;
  return value === undefined ? <p class="loading">{words}</p> : null;
}

interface BoundaryProps {
  /** If a view has failed, it is rendered again when this key changes. */
  readonly resetKey: string;
  readonly children: ComponentChildren;
}

/** Shows an error in place of a view that throws, so that the rest of the page keeps working. */
export class Boundary extends Component<BoundaryProps, { problem?: unknown }> {
  override state: { problem?: unknown } = {};

  override componentDidCatch(problem: unknown): void {
    console.error(problem);
    this.setState({ problem });
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (before.resetKey !== this.props.resetKey && this.state.problem !== undefined) {
      this.setState({ problem: undefined });
    }
  }

  override render() {
    const { problem } = this.state;
    if (problem === undefined) return this.props.children;
    return (
      <div class="view-failed">
        <h2>This view failed</h2>
        <Failed problem={problem} onRetry={() => this.setState({ problem: undefined })} />
      </div>
    );
  }
}
