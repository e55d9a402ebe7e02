// Lists the tools of a session: allowed or denied, with the setting that decides.

import { useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { ask } from "../gateway.ts";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { Select } from "../parts/select.tsx";
import { State } from "../parts/state.tsx";
import { hasWords } from "../parts/words.ts";
import { ResourceList } from "./resource-list.tsx";
import { SessionPicker } from "./session-picker.tsx";

type Catalogue = PayloadOf<"tools.catalog">;

function listTools({ tools, withheld }: Catalogue) {
  return [
    ...tools.map((tool) => ({ ...tool, allowed: true })),
    ...withheld.map((tool) => ({ description: "", ...tool, allowed: false })),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function SessionTools(props: { sessionKey: string; onChoose: (key: string) => void }) {
  const { sessionKey, onChoose } = props;
  const [words, setWords] = useState("");
  const [only, setOnly] = useState<"all" | "allowed" | "denied">("all");
  const read = useReading(sessionKey, async () => sessionKey !== "" && ask("tools.catalog", { sessionKey }));
  const catalogue = read.value || undefined;
  const all = catalogue && listTools(catalogue);
  const lines = all
    ?.filter(({ allowed }) => only === "all" || allowed === (only === "allowed"))
    .filter(({ name, reason, description }) => hasWords(`${name} ${reason} ${description}`, words.trim()));
  return (
    <section aria-label="Tools of a session">
      <ResourceList
        title="Tools of a session"
        words="Each tool with the setting that allows or denies it. Tools of MCP servers may take a while."
        list={read}
        rows={lines}
        empty="No matching tools"
        row={({ name, allowed, reason, description }) => ({
          key: name,
          state: <State state={allowed ? "ok" : "refused"} text={allowed ? "allowed" : "denied"} />,
          name,
          facts: [reason],
          body: description !== "" && <Name as="p" class="soft small clamp" text={description} />,
        })}
      >
        <div class="bar out-filters">
          <SessionPicker label="Session" value={sessionKey} onPick={onChoose} />
          {all && lines && (
            <>
              <label class="out-field">
                <span>Find</span>
                <input
                  type="search"
                  value={words}
                  placeholder="Tool, setting or text"
                  onInput={(event) => setWords(event.currentTarget.value)}
                />
              </label>
              <label class="out-field">
                <span>Show</span>
                <Select value={only} options={["all", "allowed", "denied"]} onPick={setOnly} />
              </label>
              <p class="soft" role="status">
                {`${lines.length} of ${counted(all.length, "tool")}`}
              </p>
            </>
          )}
        </div>
        {catalogue?.missing.map(({ server, why }) => (
          <p key={server} class="note tone-warn">
            The tools of the MCP server <Name text={server} /> are missing: <Name text={why} />
          </p>
        ))}
      </ResourceList>
    </section>
  );
}
