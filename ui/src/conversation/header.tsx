// The header of a conversation: name, state, tokens, cost and parent.

import { useState } from "preact/hooks";
import { has, may } from "../gateway.ts";
import { money, tokens } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { nameOf, sessionName } from "../parts/names.ts";
import { say } from "../parts/notices.tsx";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { Earlier } from "./earlier.tsx";
import { Settings } from "./settings.tsx";
import { lastChain, type Thread } from "./thread.ts";

async function copyKey(key: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(key);
    say("Key copied.");
  } catch {
    say(key);
  }
}

/** Tokens in the context, tokens in total, and cost of the session. */
function Figures({ thread }: { thread: Thread }) {
  const { now } = thread;
  if (now === undefined) return null;
  const { totalTokens, contextTokens, contextUsed, cost } = now.session;
  const ofWindow = contextTokens === null ? "" : ` of ${tokens(contextTokens)}`;
  return (
    <>
      {totalTokens > 0 && (
        <span title="Tokens: in the model's context now, and used in total">
          {contextUsed > 0 ? `${tokens(contextUsed)}${ofWindow} in context · ` : ""}
          {`${tokens(totalTokens)} tokens`}
        </span>
      )}
      {cost > 0 && <span title="Cost of this session, since its last reset">{money(cost)}</span>}
    </>
  );
}

export function Header({ thread }: { thread: Thread }) {
  const [open, setOpen] = useState(false);
  const [earlier, setEarlier] = useState(false);
  const row = thread.now?.session;
  const chainId = lastChain(thread);
  return (
    <header class="conversation-head">
      <a class="back" href={hrefOf({ view: "sessions" })} aria-label="All sessions">
        ←
      </a>
      <div class="conversation-title">
        <h2>
          <Name
            text={row === undefined ? nameOf(thread.sessionKey) : sessionName(row)}
            title={thread.sessionKey}
          />
        </h2>
        <div class="conversation-facts soft">
          {row !== undefined && (
            <State
              state={row.state}
              text={row.queuedRuns > 0 ? `${row.state}, ${row.queuedRuns} queued` : row.state}
            />
          )}
          {row?.archivedAt !== undefined && <span class="chip">archived</span>}
          {row?.sendPolicy !== undefined && (
            <span class="chip tone-warn">
              {row.sendPolicy === "deny" ? "sending denied" : "sending allowed"}
            </span>
          )}
          <Figures thread={thread} />
          {row?.spawnedBy !== undefined && (
            <span>
              from <SessionLink sessionKey={row.spawnedBy} />
            </span>
          )}
          {chainId !== undefined && <a href={hrefOf({ view: "flow", chainId })}>flow</a>}
          <button
            type="button"
            class="quiet key-copy mono"
            title="Copy the key"
            onClick={() => void copyKey(thread.sessionKey)}
          >
            <Name text={thread.sessionKey} />
          </button>
        </div>
      </div>
      {row !== undefined && has("sessions.earlier") && (
        <button type="button" aria-label="Earlier conversations" onClick={() => setEarlier(true)}>
          Earlier
        </button>
      )}
      {row !== undefined && row.archivedAt === undefined && may("operator.write") && (
        <button type="button" onClick={() => setOpen(true)}>
          Settings
        </button>
      )}
      {earlier && row !== undefined && (
        <Earlier sessionKey={thread.sessionKey} agentId={row.agentId} onClose={() => setEarlier(false)} />
      )}
      {open && row !== undefined && <Settings row={row} onClose={() => setOpen(false)} />}
    </header>
  );
}
