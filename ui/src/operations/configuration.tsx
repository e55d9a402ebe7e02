// The configuration tab: problems of the file, differences between the file and the effective configuration,
// and the effective configuration.

import { Button } from "../parts/button.tsx";
import "./configuration.css";
import "./rows.css";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { ask, has } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { Name } from "../parts/name.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { Notes } from "./notes.tsx";

const Editor = lazy(async () => (await import("./editor/editor.tsx")).Editor);

type ConfigCheck = PayloadOf<"config.check">;

export function ConfigurationTab() {
  const check = useReading("config.check", () => ask("config.check"));
  const { value, busy, again } = check;
  useNews("config", again);
  return (
    <div class="stack config">
      <div class="bar head-bar">
        <h2>Configuration</h2>
        <Button text="Check again" onClick={again} disabled={busy} />
      </div>
      <Awaited {...check} words="Checking…" />
      {value !== undefined && <Result check={value} onSaved={again} />}
    </div>
  );
}

function verdictOf({ ok, differs, exists, errors }: ConfigCheck) {
  if (!ok) {
    const problems = counted(errors.length, "problem");
    return { state: "error", words: `The file has ${problems}: the gateway keeps its settings.` };
  }
  if (differs)
    return { state: "queued", words: "Restart needed: only a restart applies some settings of the file." };
  const words = exists ? "No problems. The file is in effect." : "No file: every setting has its default.";
  return { state: "ok", words };
}

function Result({ check, onSaved }: { check: ConfigCheck; onSaved: () => void }) {
  const { path, errors, warnings, restart, settings } = check;
  const { state, words } = verdictOf(check);
  return (
    <>
      <div class="stack card box config-verdict" role="status">
        <State state={state} text={words} />
        <Name as="p" class="soft mono" text={path} />
        {restart.length > 0 && (
          <ul class="line config-changed">
            <li class="soft">A restart changes:</li>
            {restart.map((part) => (
              <Name as="li" key={part} class="chip tone-warn mono" text={part} />
            ))}
          </ul>
        )}
      </div>
      <Notes title="Problems" tone="bad" lines={errors} />
      <Notes title="Warnings" lines={warnings} />
      {has("config.set") && <Editor check={check} onSaved={onSaved} />}
      <h2 class="head-bar">Effective configuration</h2>
      <div class="card box config-tree mono">
        <Fields value={settings} />
      </div>
    </>
  );
}

const isTree = (value: unknown): value is object => typeof value === "object" && value !== null;

function inShort(value: object): string {
  const count = Object.keys(value).length;
  return Array.isArray(value) ? `[${count}]` : `{${count}}`;
}

/** Returns the name to show for an entry. For an item of a list, this is its id or name. */
function nameOf(name: string, value: unknown): string {
  const { id, name: called } = isTree(value) ? (value as { id?: unknown; name?: unknown }) : {};
  const own = typeof id === "string" ? id : typeof called === "string" ? called : undefined;
  return /^\d+$/.test(name) && own !== undefined ? own : name;
}

function Fields({ value }: { value: object }) {
  return (
    <ul>
      {Object.entries(value).map(([name, inner]) => (
        <li key={name}>
          {isTree(inner) && Object.keys(inner).length > 0 ? (
            <details>
              <summary>
                <Name text={nameOf(name, inner)} /> <span class="soft">{inShort(inner)}</span>
              </summary>
              <Fields value={inner} />
            </details>
          ) : (
            <span class="config-field">
              <Name text={name} />
              <span class="soft">: </span>
              <Name text={isTree(inner) ? inShort(inner).replace("0", "") : JSON.stringify(inner)} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
