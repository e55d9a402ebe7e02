// The text of the configuration file in CodeMirror: line numbers, colours, undo, search, completion of
// settings, and marks at lines with problems.
// TB1: the editor is in a shadow tree, because there CodeMirror adopts its style sheets. Elsewhere it writes
//      style elements, which the page's policy forbids.

import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { json } from "@codemirror/legacy-modes/mode/javascript";
import { diagnosticCount, lintGutter, setDiagnostics } from "@codemirror/lint";
import { search, searchKeymap } from "@codemirror/search";
import type { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { pressed } from "../../keys/table.ts";
import { completeSetting } from "./complete.ts";
import type { PlacedProblem, Setting } from "./places.ts";

const THEME = EditorView.theme({
  "&": { height: "min(50vh, 560px)", minHeight: "240px", color: "var(--text)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { font: "var(--size-code) / 20px var(--mono)" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": {
    borderInlineEnd: "1px solid var(--line)",
    background: "var(--sunken)",
    color: "var(--text-soft)",
  },
  ".cm-panels, .cm-tooltip": {
    border: "1px solid var(--line)",
    background: "var(--raised)",
    color: "var(--text)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit" },
  ".cm-searchMatch": { background: "var(--warn-soft)" },
  ".cm-matchingBracket": { background: "var(--accent-soft)" },
  ".cm-panel.cm-search": { fontSize: "var(--size-small)" },
  ".cm-textfield, .cm-button, .cm-panel.cm-search label": {
    padding: "var(--space-2) var(--space-3)",
    font: "inherit",
  },
  ".cm-textfield, .cm-button": {
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    background: "var(--sunken)",
    color: "inherit",
  },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.atom, tags.bool], color: "var(--waiting)" },
  { tag: tags.comment, color: "var(--text-soft)" },
]);

const EXTENSIONS = [
  THEME,
  StreamLanguage.define(json),
  syntaxHighlighting(COLOURS),
  lineNumbers(),
  lintGutter(),
  history(),
  search({ top: true }),
  bracketMatching(),
  highlightSpecialChars(),
  EditorView.contentAttributes.of(({ state }) => ({
    "aria-label": "Text of the configuration file",
    "aria-invalid": String(diagnosticCount(state) > 0),
    tabindex: "0",
  })),
  EditorView.domEventHandlers({
    // Chromium would insert the text in an element with the style of the selection, which the policy forbids.
    beforeinput({ inputType, data }, view) {
      if (inputType !== "insertText" || data === null || view.state.selection.main.empty) return false;
      view.dispatch(view.state.replaceSelection(data), { scrollIntoView: true, userEvent: "input.type" });
      return true;
    },
  }),
  keymap.of([...completionKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
];

interface TextBoxProps {
  readonly view: { current: EditorView | null };
  /** With the line ends that the gateway gives and takes: it keeps those of the file. */
  readonly text: string;
  readonly problems: readonly PlacedProblem[];
  readonly settings: readonly Setting[];
  readonly onEdit: (text: string) => void;
  /** Called at first, and when the text or the caret has changed. */
  readonly onCaret: (state: EditorState) => void;
  readonly onReview: () => void;
}

export function TextBox(props: TextBoxProps) {
  const { view, text, problems } = props;
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const root = host.current?.attachShadow({ mode: "open", delegatesFocus: true });
    if (root === undefined) return;
    const editor = new EditorView({
      doc: text,
      root,
      parent: root,
      extensions: [
        ...EXTENSIONS,
        autocompletion({ override: [(context) => completeSetting(context, latest.current.settings)] }),
        EditorView.updateListener.of(({ state, docChanged, selectionSet }) => {
          if (docChanged) latest.current.onEdit(state.sliceDoc());
          if (docChanged || selectionSet) latest.current.onCaret(state);
        }),
      ],
    });
    view.current = editor;
    latest.current.onCaret(editor.state);
    return () => editor.destroy();
  }, []);
  // Before the next key, because a text that is older than the editor's would undo that key.
  useLayoutEffect(() => {
    const { state } = view.current ?? {};
    if (state === undefined || state.sliceDoc() === text) return;
    view.current?.dispatch({ changes: { from: 0, to: state.doc.length, insert: state.toText(text) } });
  }, [text]);
  useEffect(() => {
    const { state } = view.current ?? {};
    if (state === undefined) return;
    const marks = problems.flatMap(({ text: message, line }) => {
      if (line === undefined || line > state.doc.lines) return [];
      const { from, to } = state.doc.line(line);
      return { from, to, severity: "error" as const, message: safeText(message) };
    });
    view.current?.dispatch(setDiagnostics(state, marks));
  }, [problems]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the text box in its shadow tree has the focus
    <div
      ref={host}
      class="editor-box card"
      onKeyDown={(event) => {
        if (pressed("editor", event) !== "review") return;
        event.preventDefault();
        props.onReview();
      }}
    />
  );
}

/** Selects a line, and moves the focus there. */
export function goTo(view: EditorView | null, line: number): void {
  if (view === null) return;
  const { from, to } = view.state.doc.line(Math.min(line, view.state.doc.lines));
  const effects = EditorView.scrollIntoView(from, { y: "center" });
  view.dispatch({ selection: { anchor: from, head: to }, effects });
  view.focus();
}
