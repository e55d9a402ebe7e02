// Explains the setting at the caret, and lists the settings that match a search.

import { useMemo, useState } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { counted } from "../../parts/format.ts";
import { hasWords } from "../../parts/words.ts";
import { groupsIn, type Setting, settingLines, settingsIn } from "./places.ts";

const FOUND_MAX = 40;

/** Shows a text. Its parts between backticks are shown as code. */
function Ticked({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, at) => (at % 2 === 1 ? <code key={`${at} ${part}`}>{part}</code> : part))}
    </>
  );
}

function About({ setting }: { setting: Setting }) {
  const { path, type, unit, fallback, required, meaning } = setting;
  return (
    <>
      <p class="mono">
        <strong>{path}</strong>
      </p>
      {meaning !== "" && (
        <p>
          <Ticked text={meaning} />
        </p>
      )}
      <p class="soft">
        <Ticked text={type} />
        {unit !== undefined && ` · ${unit}`}
        {fallback !== undefined && (
          <>
            {" · default "}
            <code>{fallback}</code>
          </>
        )}
        {required && " · required"}
      </p>
    </>
  );
}

/** Returns the settings with all words in path or meaning, those with them in the path first. */
function matching(settings: readonly Setting[], search: string): Setting[] {
  const words = search.trim();
  const inPath = ({ path }: Setting) => hasWords(path, words);
  const inAll = ({ path, meaning }: Setting) => hasWords(`${path} ${meaning}`, words);
  return [...settings.filter(inPath), ...settings.filter((one) => !inPath(one) && inAll(one))];
}

export function Help(props: {
  settings: readonly Setting[];
  /** Path of the setting at the caret, in the form that the list of settings uses. */
  at: string;
  text: string;
  onGo: (line: number) => void;
}) {
  const { settings, at, text, onGo } = props;
  const [search, setSearch] = useState("");
  const here = settings.find(({ path }) => path === at);
  const groups = groupsIn(at, settings);
  const searches = search.trim() !== "";
  const lines = useMemo(
    () => (searches ? settingLines(text, settings) : undefined),
    [searches, text, settings],
  );
  const found = searches ? matching(settings, search) : settingsIn(at, settings);
  const title = searches ? "Settings found" : `Settings in ${at === "" ? "the file" : at}`;
  return (
    <aside class="stack editor-help" aria-label="Help">
      <section class="stack card box" aria-label="Setting at the caret">
        <h3>At the caret</h3>
        {here !== undefined ? (
          <About setting={here} />
        ) : (
          <p class="mono">
            <strong>{at === "" ? "the whole file" : at}</strong>
          </p>
        )}
        {groups.length > 0 && <p class="soft">Groups of settings: {groups.join(", ")}</p>}
      </section>
      <section class="stack card box" aria-label="All settings">
        <input
          type="search"
          placeholder="Search all settings"
          aria-label="Search all settings"
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
        <p class="soft" role="status">
          {searches ? `${counted(found.length, "setting")} found` : ""}
        </p>
        {found.length > 0 && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
          <section class="editor-found" aria-label={title} tabIndex={0}>
            <ul class="rows">
              {found.slice(0, FOUND_MAX).map((setting) => {
                const { path } = setting;
                const line = lines?.get(path);
                const words = `Go to ${path}, line ${line}`;
                return (
                  <li key={path}>
                    <About setting={setting} />
                    {lines && line === undefined && <p class="soft">Not in this file</p>}
                    {line !== undefined && (
                      <Button text={`Line ${line}`} aria-label={words} onClick={() => onGo(line)} />
                    )}
                  </li>
                );
              })}
            </ul>
            {found.length > FOUND_MAX && <p class="soft">and {found.length - FOUND_MAX} more</p>}
          </section>
        )}
      </section>
    </aside>
  );
}
