// The dialog that lists all keys of the page, with the switch for keys of a single character.

import { Button } from "../parts/button.tsx";
import "./palette.css";
import { type ActionOf, type Area, characterKeys, isApple, KEYS, turnCharacterKeys } from "../keys/table.ts";
import { Dialog } from "../parts/dialog.tsx";

type Action = { [A in Area]: ActionOf<A> }[Area];

const TITLES: Readonly<Record<Area, string>> = {
  page: "Everywhere",
  rows: "Lists, trees and chains",
  inbox: "Inbox",
  runs: "Runs",
  composer: "Message",
  menu: "Suggestions",
  column: "Edge of a column",
  find: "Find in steps",
  plot: "Plots",
  editor: "Configuration",
};

const WORDS: Readonly<Record<Action, string>> = {
  palette: "Find a session, view or action",
  search: "Search in the view",
  dispatch: "Ask an agent",
  keys: "Show the keys",
  next: "Next",
  previous: "Previous",
  nextPage: "Next page",
  previousPage: "Previous page",
  first: "First",
  last: "Last",
  open: "Expand",
  close: "Collapse",
  choose: "Choose",
  peek: "Peek",
  enter: "Open the session",
  select: "Select",
  approve: "Allow",
  deny: "Deny",
  retry: "Retry",
  dismiss: "Dismiss",
  snooze: "Snooze for an hour",
  wider: "Wider",
  narrower: "Narrower",
  reset: "As wide as the others",
  range: "Select a range",
  send: "Send",
  line: "Add a line",
  commands: "List the commands",
  complete: "Complete",
  leave: "Close",
  review: "Review the changes",
};

const SIGNS: Readonly<Record<string, string>> = {
  Mod: isApple ? "⌘" : "Ctrl",
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowRight: "→",
  ArrowLeft: "←",
  PageDown: "Page down",
  PageUp: "Page up",
  Escape: "Esc",
};

function Key({ chord }: { chord: string }) {
  const text = chord.split("+").map((key) => SIGNS[key] ?? key);
  return <kbd>{text.join(" ")}</kbd>;
}

/** Returns the keys that act. The slash of the composer is text, so it always acts. */
function chordsOf(area: Area, chords: string): string[] {
  const all = chords.split(" ");
  return characterKeys.value || area === "composer" ? all : all.filter(({ length }) => length > 1);
}

function Keys({ area }: { area: Area }) {
  return (
    <div class="keys-area">
      <h3>{TITLES[area]}</h3>
      <dl>
        {Object.entries(KEYS[area])
          .map(([action, chords]) => ({ action, chords: chordsOf(area, chords) }))
          .filter(({ chords }) => chords.length > 0)
          .map(({ action, chords }) => (
            <div key={action}>
              <dt>
                {chords.map((chord) => (
                  <Key key={chord} chord={chord} />
                ))}
              </dt>
              <dd>{WORDS[action as Action]}</dd>
            </div>
          ))}
      </dl>
    </div>
  );
}

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" class="keys" onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling regions need the keyboard */}
      <section class="keys-areas" aria-label="Keys by place" tabIndex={0}>
        <div class="keys-columns">
          {(Object.keys(TITLES) as Area[]).map((area) => (
            <Keys key={area} area={area} />
          ))}
        </div>
      </section>
      <div class="actions">
        <label class="inline row keys-switch">
          <input
            type="checkbox"
            checked={characterKeys.value}
            onChange={(event) => turnCharacterKeys(event.currentTarget.checked)}
          />
          Keys of a single character: j, k, / and ?
        </label>
        <Button text="Close" onClick={onClose} />
      </div>
    </Dialog>
  );
}
