// The tab that shows paired devices with their connection, commands and last connection. Operators rename and
// remove them here.

import type { NodeListRow } from "../../../../src/features/nodes/contract.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { SchemaForm } from "../../inbox/form.tsx";
import { usePolled } from "../../operations/polling.ts";
import { type DialogProps, ResourceList, type ResourceRow } from "../../operations/resource-list.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ago, counted } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { say } from "../../parts/notices.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { joinWords } from "../../parts/words.ts";
import { hrefOf } from "../../route.ts";

/** The nodes are polled, because no event reports that one has connected. */
const EVERY_MS = 5_000;
const NAME_MAX_CHARS = 64;

function Rename({ node, onClose, onDone }: DialogProps & { node: NodeListRow }) {
  const { nodeId, displayName } = node;
  return (
    <Dialog title="Rename this node" onClose={onClose}>
      <SchemaForm
        action="Rename"
        fields={[
          { name: "name", title: "Name", required: true, maxChars: NAME_MAX_CHARS, default: displayName },
        ]}
        onSubmit={async ({ name = "" }) => {
          await ask("node.rename", { nodeId, displayName: name.trim() });
          say("Renamed.");
          onDone();
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}

/** Lists a node's commands, and marks those that the configuration does not allow. */
function Commands({ node }: { node: NodeListRow }) {
  const read = useReading(`${node.nodeId} ${node.commands.join()}`, () =>
    ask("node.describe", { nodeId: node.nodeId }),
  );
  if (node.commands.length === 0) return <p class="soft">offers no commands</p>;
  const allowed = read.value?.allowedCommands;
  return (
    <p class="line chips">
      {node.commands.map((command) => {
        const isRefused = allowed !== undefined && !allowed.includes(command);
        return (
          <code key={command} class={isRefused ? "chip tone-warn" : "chip"}>
            <Name text={command} />
            {isRefused && " (not allowed in the configuration)"}
          </code>
        );
      })}
    </p>
  );
}

function nodeRow(node: NodeListRow, now: number): ResourceRow {
  const { nodeId, displayName, platform, version, connected, connectedAtMs, lastSeenAtMs, pairedAtMs } = node;
  const seen = connected ? connectedAtMs : lastSeenAtMs;
  return {
    key: nodeId,
    state: <State state={connected ? "ok" : "idle"} text={connected ? "connected" : "offline"} />,
    name: displayName,
    beside: (
      <>
        <SessionLink sessionKey={node.sessionKey} name="session" />
        {node.agentId !== undefined && (
          <span class="soft">
            agent <Name text={node.agentId} />
          </span>
        )}
      </>
    ),
    facts: [
      joinWords([
        platform,
        version,
        seen === undefined ? "" : `${connected ? "connected" : "last seen"} ${ago(seen, now)}`,
        `paired ${ago(pairedAtMs, now)}`,
      ]),
    ],
    body: <Commands node={node} />,
    actions: [
      { label: "Rename", about: displayName, dialog: (props) => <Rename node={node} {...props} /> },
      {
        label: "Remove",
        about: displayName,
        class: "danger",
        run: () => ask("node.pair.remove", { nodeId }),
        done: "Removed.",
        question: {
          title: "Remove this node?",
          text: (
            <p>
              <Name text={displayName} /> is disconnected, and must be paired again to come back. Its session
              stays.
            </p>
          ),
        },
      },
    ],
  };
}

export function NodesTab() {
  const list = usePolled("nodes", EVERY_MS, () => ask("node.pair.list"));
  const { again, value } = list;
  useNews("node.pair.requested", again);
  useNews("node.pair.resolved", again);
  const asking = value?.pending.length ?? 0;
  return (
    <ResourceList
      title="Nodes"
      words={
        <>
          Machines and devices that offer commands to agents. MCP servers and ACP agents are under{" "}
          <a href={hrefOf({ view: "operations", tab: "servers" })}>Servers</a>.
        </>
      }
      list={list}
      rows={value?.paired}
      empty={
        <p>
          No nodes. Run <code>npx parley-gateway node run</code> on another machine, and approve its code in
          the inbox.
        </p>
      }
      row={(node) => nodeRow(node, tick.value)}
    >
      {asking > 0 && (
        <p class="note tone-warn">
          {counted(asking, "device")} asked to be paired: approve or reject in the{" "}
          <a href={hrefOf({ view: "inbox" })}>inbox</a>.
        </p>
      )}
    </ResourceList>
  );
}
