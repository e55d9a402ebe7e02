// Lists the tools of a session: allowed or denied, with the setting that decides.

import { useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { ask } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { Select } from "../parts/select.tsx";
import { State } from "../parts/state.tsx";
import { hasWords } from "../parts/words.ts";
import { SessionPicker } from "./session-picker.tsx";
import { Table } from "./table.tsx";

type Catalogue = PayloadOf<"tools.catalog">;

interface ToolLine {
  readonly name: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly description: string;
}

function linesOf({ tools, withheld }: Catalogue): ToolLine[] {
  const lines = [
    ...tools.map(({ name, reason, description }) => ({ name, reason, description, allowed: true })),
    ...withheld.map(({ name, reason }) => ({ name, reason, description: "", allowed: false })),
  ];
  return lines.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function Tools({ sessionKey }: { sessionKey: string }) {
  const [words, setWords] = useState("");
  const [only, setOnly] = useState<"all" | "allowed" | "denied">("all");
  const read = useReading(sessionKey, () => ask("tools.catalog", { sessionKey }));
  if (read.value === undefined || read.problem !== undefined)
    return <Awaited {...read} words="Loading… MCP servers may take a while." />;
  const all = linesOf(read.value);
  const lines = all
    .filter(({ allowed }) => only === "all" || allowed === (only === "allowed"))
    .filter(({ name, reason, description }) => hasWords(`${name} ${reason} ${description}`, words.trim()));
  return (
    <>
      {read.value.missing.map(({ server, why }) => (
        <p key={server} class="out-note tone-warn">
          The tools of the MCP server <Name text={server} /> are missing: <Name text={why} />
        </p>
      ))}
      <div class="bar out-filters">
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
          {lines.length === all.length
            ? counted(all.length, "tool")
            : `${lines.length} of ${all.length} tools`}
        </p>
      </div>
      <Table
        label="Tools"
        class="tool-table"
        box="scroll-x"
        rows={lines}
        rowKey={({ name }) => name}
        columns={[
          {
            title: "Tool",
            isName: true,
            class: "mono",
            cell: ({ name, description }) => <Name text={name} title={description || undefined} />,
          },
          {
            title: "Decision",
            cell: ({ allowed }) => (
              <State state={allowed ? "ok" : "refused"} text={allowed ? "allowed" : "denied"} />
            ),
          },
          {
            title: "Reason",
            cell: ({ reason, description }) => (
              <>
                <Name text={reason} />
                {description !== "" && <Name as="p" class="soft small clamp" text={description} />}
              </>
            ),
          },
        ]}
      />
      {lines.length === 0 && <p class="empty">No matching tools</p>}
    </>
  );
}

export function ToolsCard(props: { sessionKey: string; onChoose: (key: string) => void }) {
  const { sessionKey, onChoose } = props;
  return (
    <section class="card rights-card" aria-labelledby="tools-title">
      <h2 id="tools-title">Tools of a session</h2>
      <div class="bar picker-bar">
        <SessionPicker label="Session" value={sessionKey} onPick={onChoose} />
      </div>
      {sessionKey === "" ? (
        <p class="empty">
          Choose a session to list its tools, each with the setting that allows or denies it.
        </p>
      ) : (
        <Tools key={sessionKey} sessionKey={sessionKey} />
      )}
    </section>
  );
}
