// The tab that shows paired devices with their connection, commands and last connection. Operators rename and
// remove them here.

import { useState } from "preact/hooks";
import type { NodeListRow, PairRequestRow } from "../../../../src/features/nodes/contract.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { usePolling } from "../../operations/polling.ts";
import { Confirm, Dialog, Form } from "../../parts/dialog.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { ago, counted } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { hrefOf } from "../../route.ts";
import "../../operations/rows.css";

/**
 * Interval at which the nodes are read. They must be polled, because no event reports that a node has
 * connected.
 */
const EVERY_MS = 5_000;
const NAME_MAX_CHARS = 64;

interface Props {
  readonly node: NodeListRow;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Rename({ node, onClose, onDone }: Props) {
  const [name, setName] = useState(node.displayName);
  const rename = async (): Promise<void> => {
    await ask("node.rename", { nodeId: node.nodeId, displayName: name.trim() });
    say("Renamed.");
    onDone();
    onClose();
  };
  return (
    <Dialog title="Rename this node" onClose={onClose}>
      <Form action="Rename" disabled={name.trim() === ""} onSubmit={rename} onClose={onClose}>
        <label>
          Name
          <input
            value={name}
            maxLength={NAME_MAX_CHARS}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
      </Form>
    </Dialog>
  );
}

function Remove({ node, onClose, onDone }: Props) {
  const remove = (): void => {
    ask("node.pair.remove", { nodeId: node.nodeId })
      .then(() => say("Removed."), complain)
      .finally(onDone);
  };
  return (
    <Confirm title="Remove this node?" action="Remove" onConfirm={remove} onClose={onClose}>
      <p>
        <Name text={node.displayName} /> is disconnected, and must be paired again to come back. Its session
        stays.
      </p>
    </Confirm>
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
    <p class="chips">
      {node.commands.map((command) => {
        const isRefused = allowed !== undefined && !allowed.includes(command);
        return (
          <code key={command} class={isRefused ? "chip tone-warn" : "chip"}>
            <Name text={command} />
            {isRefused && " (not in nodes.allowCommands)"}
          </code>
        );
      })}
    </p>
  );
}

function Row({ node, onAsk }: { node: NodeListRow; onAsk: (does: "rename" | "remove") => void }) {
  const now = tick.value;
  const { displayName, platform, version, connected, connectedAtMs, lastSeenAtMs, pairedAtMs } = node;
  const seen = connected ? connectedAtMs : lastSeenAtMs;
  const words = [
    platform,
    version,
    seen === undefined ? "" : `${connected ? "connected" : "last seen"} ${ago(seen, now)}`,
    `paired ${ago(pairedAtMs, now)}`,
  ];
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <State state={connected ? "ok" : "idle"} text={connected ? "connected" : "offline"} />
      </div>
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={displayName} title={node.nodeId} />
          </strong>
          <SessionLink sessionKey={node.sessionKey} name="session" />
          {node.agentId !== undefined && (
            <span class="soft">
              agent <Name text={node.agentId} />
            </span>
          )}
        </p>
        <p class="soft">
          <Name text={words.filter((one) => one !== "").join(" · ")} />
        </p>
        <Commands node={node} />
      </div>
      <div class="row-actions">
        <button type="button" aria-label={`Rename ${displayName}`} onClick={() => onAsk("rename")}>
          Rename
        </button>
        <button
          type="button"
          class="danger"
          aria-label={`Remove ${displayName}`}
          onClick={() => onAsk("remove")}
        >
          Remove
        </button>
      </div>
    </li>
  );
}

function Pending({ requests }: { requests: readonly PairRequestRow[] }) {
  if (requests.length === 0) return null;
  return (
    <p class="out-note tone-warn">
      {counted(requests.length, "device")} asked to be paired: approve or reject in the{" "}
      <a href={hrefOf({ view: "inbox" })}>inbox</a>.
    </p>
  );
}

export function NodesTab() {
  const list = useReading("nodes", () => ask("node.pair.list"));
  const { again, value } = list;
  usePolling(EVERY_MS, again);
  useNews("node.pair.requested", again);
  useNews("node.pair.resolved", again);
  const [asked, setAsked] = useState<{ does: "rename" | "remove"; node: NodeListRow }>();
  const dialog = { onClose: () => setAsked(undefined), onDone: () => void again() };
  return (
    <>
      <h2>Nodes</h2>
      <p class="soft">
        Machines and devices that offer commands to agents. MCP servers and ACP agents are under{" "}
        <a href={hrefOf({ view: "operations", tab: "servers" })}>Servers</a>.
      </p>
      <Awaited {...list} />
      {value !== undefined && <Pending requests={value.pending} />}
      {value?.paired.length === 0 && (
        <p class="empty">
          No nodes. Run <code>npx parley-gateway node run</code> on another machine, and approve its code in
          the inbox.
        </p>
      )}
      <ul class="out-rows card" aria-label="Nodes">
        {value?.paired.map((node) => (
          <Row key={node.nodeId} node={node} onAsk={(does) => setAsked({ does, node })} />
        ))}
      </ul>
      {asked?.does === "rename" && <Rename node={asked.node} {...dialog} />}
      {asked?.does === "remove" && <Remove node={asked.node} {...dialog} />}
    </>
  );
}
