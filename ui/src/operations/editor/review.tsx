// Shows the changes that saving would make, and saves them. If somebody else has saved the file, the editor
// shows both versions instead.

import { GatewayError } from "../../../../src/contract/client/error.ts";
import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { type DiffLine, diffLines, foldLines } from "../../../../src/core/text/line-diff.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { ask } from "../../gateway.ts";
import { Dialog, Form } from "../../parts/dialog.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { counted } from "../../parts/format.ts";
import { useReading } from "../../parts/reading.ts";
import { Notes } from "../notes.tsx";
import { type ConfigText, fileRead, saved } from "./state.ts";

export type Saved = PayloadOf<"config.set">;
export type Checked = PayloadOf<"config.check">;

const CONTEXT_LINES = 3;
const LINES_MAX = 600;

const MARKS: Readonly<Record<DiffLine["kind"], readonly [string, string]>> = {
  same: [" ", ""],
  removed: ["−", "removed: "],
  added: ["+", "added: "],
  skipped: ["⋯", ""],
};

export function Diff({ before, after, title }: { before: string; after: string; title: string }) {
  const lines = foldLines(diffLines(before, after), CONTEXT_LINES);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
    <section class="diff card mono" aria-label={title} tabIndex={0}>
      <ol>
        {lines.slice(0, LINES_MAX).map(({ kind, text }, at) => (
          <li key={`${at} ${kind}`} class={`diff-${kind}`}>
            <span aria-hidden="true">{MARKS[kind][0]}</span>
            <span class="visually-hidden">{MARKS[kind][1]}</span>
            <bdi>{kind === "skipped" ? `${counted(Number(text), "unchanged line")}` : safeLine(text)}</bdi>
          </li>
        ))}
      </ol>
      {lines.length > LINES_MAX && <p class="soft">and {lines.length - LINES_MAX} more lines</p>}
    </section>
  );
}

export function Effect({ changed, restart }: Pick<Saved, "changed" | "restart">) {
  if (changed.length === 0) return <p>These changes alter no setting.</p>;
  if (restart.length === 0) return <p>New runs use these settings at once.</p>;
  return (
    <ul class="line config-changed">
      <li>Only a restart applies these settings. New runs use all others at once.</li>
      {restart.map((part) => (
        <li key={part} class="chip tone-warn mono">
          {part}
        </li>
      ))}
    </ul>
  );
}

/** The gateway checks the text again first, so that the effects that are shown are current. */
export function Review(props: {
  base: ConfigText;
  text: string;
  onSaved: (saved: Saved) => void;
  /** `isOver`: the text was saved, or the file is newer. False: the reader has cancelled. */
  onClose: (isOver: boolean) => void;
}) {
  const { base, text, onSaved, onClose } = props;
  const { value: checked, problem, again } = useReading(text, () => ask("config.check", { text }));
  const save = async (): Promise<void> => {
    try {
      const done = await ask("config.set", { text, revision: base.revision });
      saved(text, done.revision);
      onSaved(done);
    } catch (error) {
      const isNewer = error instanceof GatewayError && error.reason === "config_changed";
      // Read the newer file, so that the editor shows both versions.
      if (isNewer) fileRead(await ask("config.get"));
      if (!isNewer) throw error;
    }
    onClose(true);
  };
  const cancel = (): void => onClose(false);
  return (
    <Dialog title="Save these changes?" onClose={cancel}>
      <Form class="review" action="Save" disabled={checked?.ok !== true} onSubmit={save} onClose={cancel}>
        <Diff before={base.exists ? base.text : ""} after={text} title="Changes" />
        <Awaited value={checked} problem={problem} again={again} words="Checking…" />
        {checked?.ok === true && <Effect {...checked} />}
        {checked?.ok === true && <Notes lines={checked.reach ?? []} title="You may lose access:" />}
        {checked?.ok === true && <Notes lines={checked.warnings} title="Warnings" />}
        {checked?.ok === false && <Notes lines={checked.errors} title="An invalid text cannot be saved:" />}
      </Form>
    </Dialog>
  );
}
