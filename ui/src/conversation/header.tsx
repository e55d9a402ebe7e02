// The header of a conversation: name, state, tokens, cost and parent.

import { useState } from "preact/hooks";
import { forkOrigin } from "../../../src/core/fork-key.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { agentIn } from "../agents/face.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { ask, has, listSessions, may } from "../gateway.ts";
import { OutsideChip } from "../labels/chip.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Doing } from "../parts/doing.tsx";
import { Awaited } from "../parts/failure.tsx";
import { exactMoney, money, tokens } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { nameOf, sessionName } from "../parts/names.ts";
import { say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { joinWords } from "../parts/words.ts";
import { go, hrefOf, route } from "../route.ts";
import { Earlier } from "./earlier.tsx";
import { Settings } from "./settings.tsx";
import { lastChain, type Now, type Thread } from "./thread.ts";

async function copyKey(key: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(key);
    say("Key copied.");
  } catch {
    say(key);
  }
}

function Figures({ row: { totalTokens, contextTokens, contextUsed, cost } }: { row: Now["session"] }) {
  const ofWindow = contextTokens === null ? "" : ` of ${tokens(contextTokens)}`;
  const context = contextUsed > 0 ? `${tokens(contextUsed)}${ofWindow} in context` : "";
  return (
    <>
      {totalTokens > 0 && (
        <span title="Tokens: in the model's context now, and used in total">
          {joinWords([context, `${tokens(totalTokens)} tokens`])}
        </span>
      )}
      {cost > 0 && (
        <span title={`Cost of this session since its last reset: ${exactMoney(cost)}`}>{money(cost)}</span>
      )}
    </>
  );
}

const FAILED_SHOWN_MAX = 100;

function FailedJobs({ sessionKey, onClose }: { sessionKey: string; onClose: () => void }) {
  const reading = useReading(`failed jobs ${sessionKey}`, () =>
    listSessions({ spawnedBy: sessionKey, only: "failed", includeArchived: true, limit: FAILED_SHOWN_MAX }),
  );
  return (
    <Dialog title="Failed jobs" onClose={onClose}>
      {reading.value === undefined ? (
        <Awaited {...reading} />
      ) : (
        <ul class="stack failed-jobs">
          {reading.value.sessions.map((row) => (
            <li key={row.key} class="stack">
              <SessionLink sessionKey={row.key} name={sessionName(row)} />
              <Doing row={row} />
            </li>
          ))}
        </ul>
      )}
      <div class="actions">
        <Button text="Close" onClick={onClose} />
      </div>
    </Dialog>
  );
}

export function Header({ thread }: { thread: Thread }) {
  const [dialog, setDialog] = useState<"settings" | "earlier" | "failed">();
  const close = (): void => setDialog(undefined);
  const { sessionKey } = thread;
  const at = route.value;
  const { messageId, sessionId } = at.view === "sessions" ? at : {};
  /** A message of an earlier conversation, which is shown in a dialog. */
  const earlier = messageId === undefined || sessionId === undefined ? undefined : { messageId, sessionId };
  const row = thread.now?.session;
  const agentId = row?.agentId ?? agentIn(sessionKey);
  const agent = agentName(agentId);
  const name = row?.label || row?.displayName || nameOf(sessionKey);
  const chainId = lastChain(thread);
  const origin = forkOrigin(sessionKey);
  // A reset changes the id of the current conversation.
  const { value: before } = useReading(`earlier ${sessionKey} ${thread.sessionId}`, async () => {
    if (!has("sessions.earlier")) return [];
    return (await ask("sessions.earlier", { key: sessionKey, limit: 1 })).conversations;
  });
  return (
    <header class="bar strip conversation-head">
      <a class="back" href={hrefOf({ view: "sessions" })} aria-label="All sessions">
        ←
      </a>
      <h2 class="row fill">
        <AgentMark id={agentId} />
        <Name as="span" class="cut" text={name} title={sessionKey} />
      </h2>
      <div class="bar own-line conversation-facts small soft">
        {name !== agent && <Name as="span" text={agent} title={`Agent ${agentId}`} />}
        {row !== undefined && <Doing row={row} onFailed={() => setDialog("failed")} />}
        {row?.archivedAt !== undefined && <span class="chip">archived</span>}
        <OutsideChip sessionKey={sessionKey} outside={row?.outside} />
        {row?.sendPolicy !== undefined && (
          <span class="chip tone-warn">
            {row.sendPolicy === "deny" ? "sending denied" : "sending allowed"}
          </span>
        )}
        {row !== undefined && <Figures row={row} />}
        {row?.spawnedBy !== undefined && (
          <span>
            from <SessionLink sessionKey={row.spawnedBy} />
          </span>
        )}
        {origin !== undefined && (
          <span>
            forked from <SessionLink sessionKey={origin} />
          </span>
        )}
        {chainId !== undefined && <a href={hrefOf({ view: "flow", chainId })}>flow</a>}
        <Button
          text="Copy key"
          class="quiet small key-copy"
          data-act=""
          title={safeLine(sessionKey)}
          onClick={() => void copyKey(sessionKey)}
        />
      </div>
      {row !== undefined && before?.[0] !== undefined && (
        <Button
          text="Earlier"
          data-act=""
          aria-label="Earlier conversations"
          onClick={() => setDialog("earlier")}
        />
      )}
      {row !== undefined && row.archivedAt === undefined && may("operator.write") && (
        <Button text="Settings" data-act="Settings of the session" onClick={() => setDialog("settings")} />
      )}
      {(dialog === "earlier" || earlier !== undefined) && row !== undefined && (
        <Earlier
          key={earlier?.messageId}
          at={earlier}
          onClose={() => {
            close();
            if (earlier !== undefined) go({ view: "sessions", key: sessionKey });
          }}
        />
      )}
      {dialog === "failed" && <FailedJobs sessionKey={sessionKey} onClose={close} />}
      {dialog === "settings" && row !== undefined && <Settings row={row} onClose={close} />}
    </header>
  );
}
