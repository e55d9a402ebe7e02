// Edits the configuration file: its text, problems while the reader types, and help about settings. The Tab
// key moves the focus out of the text, as in every field. Ctrl+S or ⌘S opens the review of the changes.

import type { EditorState } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { Button } from "../../parts/button.tsx";
import "./editor.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { GatewayError } from "../../../../src/contract/client/error.ts";
import { json5Places, pathAt } from "../../../../src/core/text/json5-places.ts";
import { after, settled } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { useCalmReading } from "../../parts/calm-reading.ts";
import { Awaited, Failed } from "../../parts/failure.tsx";
import { counted } from "../../parts/format.ts";
import { Lines } from "../../parts/name.tsx";
import { useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { Notes } from "../notes.tsx";
import { Help } from "./help.tsx";
import { type PlacedProblem, placedProblems, type Setting, settingPath } from "./places.ts";
import { type Checked, Diff, Effect, Review, type Saved } from "./review.tsx";
import { base, type ConfigText, discard, draft, edit, fileRead, keepMine, newer } from "./state.ts";
import { goTo, TextBox } from "./text-box.tsx";

const TYPING_MS = 400;
const CARET_MS = 150;

/** Checks the edited text when the reader pauses. `again`: checks it again. */
function useCheck(text: string, isEdited: boolean) {
  const [tries, setTries] = useState(0);
  const key = isEdited ? `${tries} ${text}` : "";
  const { of, value, problem } = useCalmReading(key, TYPING_MS, async () =>
    isEdited ? ask("config.check", { text }) : undefined,
  );
  const again = (): void => setTries(tries + 1);
  return of === key ? { result: value, problem, again } : { again };
}

/** `check`: the latest check of the file. Each new one means that the file may have changed. */
export function Editor({ check, onSaved }: { check: Checked; onSaved: () => void }) {
  const file = useReading("config.get", () => ask("config.get"));
  const schema = useReading("config.schema", () => ask("config.schema"));
  useEffect(() => {
    if (file.value !== undefined) fileRead(file.value);
  }, [file.value]);
  useEffect(() => {
    if (file.value !== undefined) void file.again();
  }, [check]);
  const { problem } = file;
  // The gateway was started without a configuration file. The check above the editor already says so.
  if (problem instanceof GatewayError && problem.reason === "invalid_config") return null;
  const { value } = base;
  return (
    <section class="stack" aria-labelledby="editor-title">
      <h2 id="editor-title" class="head-bar">
        File
      </h2>
      <Awaited value={value} problem={problem} again={file.again} words="Reading the file…" />
      {value !== undefined && <Text file={value} settings={schema.value?.settings ?? []} onSaved={onSaved} />}
    </section>
  );
}

function Text(props: { file: ConfigText; settings: readonly Setting[]; onSaved: () => void }) {
  const { file, settings, onSaved } = props;
  const text = draft.value ?? file.text;
  const isEdited = draft.value !== undefined;
  const mayReview = isEdited && newer.value === undefined;
  const view = useRef<EditorView>(null);
  const [isReviewed, setReviewed] = useState(false);
  const [done, setDone] = useState<Saved>();
  const checked = useCheck(text, isEdited);
  const errors = checked.result?.errors;
  const problems = useMemo(() => placedProblems(errors ?? [], text), [errors, text]);
  const [at, setAt] = useState<ReturnType<typeof pathAt>>([]);
  const [caretMoved] = useState(() =>
    settled<EditorState>(CARET_MS, ({ doc, selection }) => {
      const now = doc.toString();
      setAt(pathAt(now, json5Places(now), selection.main.head));
    }),
  );
  const go = (line: number): void => goTo(view.current, line);
  const review = (): void => setReviewed(mayReview);
  return (
    <>
      <div class="bar">
        <Button text="Discard" disabled={!isEdited} onClick={discard} />
        <Button text="Review and save" class="primary" disabled={!mayReview} onClick={review} />
      </div>
      <p class="soft">
        {file.exists ? "" : "There is no file yet: saving creates it. "}
        {file.hidden > 0 &&
          `${counted(file.hidden, "secret")} shown as [hidden …]. Leave that text, and the secret stays. `}
        A saved file is applied at once.
      </p>
      <Verdict checked={checked} isEdited={isEdited} done={done} />
      {newer.value !== undefined && <Conflict base={file} newest={newer.value} mine={text} />}
      <div class="editor-columns">
        <div class="stack">
          <TextBox
            view={view}
            text={text}
            problems={problems}
            settings={settings}
            onCaret={caretMoved}
            onEdit={(changed) => {
              setDone(undefined);
              edit(changed);
            }}
            onReview={review}
          />
          <Problems problems={problems} onGo={go} />
        </div>
        <Help settings={settings} at={settingPath(at, settings)} text={text} onGo={go} />
      </div>
      {isReviewed && isEdited && (
        <Review
          base={file}
          text={text}
          onSaved={(result) => {
            setDone(result);
            onSaved();
          }}
          onClose={(isOver) => {
            setReviewed(false);
            // The button that opened the review is disabled then, so the text gets the focus.
            if (isOver) after(0, () => view.current?.focus());
          }}
        />
      )}
    </>
  );
}

function Verdict(props: {
  checked: ReturnType<typeof useCheck>;
  isEdited: boolean;
  done: Saved | undefined;
}) {
  const { checked, isEdited, done } = props;
  const { result, problem, again } = checked;
  if (problem !== undefined) return <Failed problem={problem} onRetry={again} />;
  if (done !== undefined && !isEdited)
    return (
      <div class="stack editor-done" role="status">
        <State state="ok" text="Saved." />
        <Effect {...done} />
        <Notes lines={done.reach} title="After a restart:" />
      </div>
    );
  const word = !isEdited ? "Not edited" : result === undefined ? "Checking…" : "No problems";
  return (
    <p class="editor-verdict" role="status">
      {result?.ok === false ? (
        <State
          state="error"
          text={`${counted(result.errors.length, "problem")}: this text can't be saved.`}
        />
      ) : (
        <State state={result === undefined ? "idle" : "ok"} text={word} />
      )}
    </p>
  );
}

function Problems({ problems, onGo }: { problems: readonly PlacedProblem[]; onGo: (line: number) => void }) {
  if (problems.length === 0) return null;
  return (
    <ul class="stack" aria-label="Problems in this text">
      {problems.map(({ text, line }) => (
        <li key={text} class="row">
          {line !== undefined && <Button text={`Line ${line}`} class="small" onClick={() => onGo(line)} />}
          <Lines text={text} class="raw" />
        </li>
      ))}
    </ul>
  );
}

/** Asks whether to keep the edits or the file that somebody else has saved (ES1 of editor/state.ts). */
function Conflict({ base: from, newest, mine }: { base: ConfigText; newest: ConfigText; mine: string }) {
  return (
    <section class="stack card box editor-conflict" aria-labelledby="conflict-title">
      <h3 id="conflict-title">The file has changed since you began</h3>
      <p>Nothing was saved. Compare both changes, then choose.</p>
      <div class="editor-both">
        <div>
          <h4>Changes by others</h4>
          <Diff before={from.text} after={newest.text} title="Changes in the file" />
        </div>
        <div>
          <h4>Your text compared with the file</h4>
          <Diff before={newest.text} after={mine} title="Your changes" />
        </div>
      </div>
      <div class="actions">
        <Button text="Take the file, drop mine" onClick={discard} />
        <Button text="Keep mine, review again" onClick={keepMine} />
      </div>
    </section>
  );
}
