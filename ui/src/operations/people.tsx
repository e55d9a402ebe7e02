// Shows the people who may write to agents on channels, and takes this right away.

import { useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";

type Person = PayloadOf<"channels.pair.list">["peers"][number];

const STATES = {
  pending: { text: "asks", tone: "warn" },
  approved: { text: "allowed", tone: "good" },
  blocked: { text: "denied", tone: "bad" },
} as const;

function Row({ person, onRemove }: { person: Person; onRemove: () => void }) {
  const { channel, accountId, peerId, agentId, name = peerId, state, askedAt, decidedAt = askedAt } = person;
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <State state={state} {...STATES[state]} />
      </div>
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={name} />
          </strong>
          <span class="soft">{ago(decidedAt, tick.value)}</span>
        </p>
        <p class="soft">
          <Name text={`${channel}:${accountId} · id ${peerId} · writes to the agent ${agentId}`} />
        </p>
      </div>
      <div class="row-actions">
        {state === "pending" ? (
          <a href={hrefOf({ view: "inbox" })}>Decide in the inbox</a>
        ) : (
          <button type="button" class="danger" aria-label={`Remove ${safeLine(name)}`} onClick={onRemove}>
            Remove
          </button>
        )}
      </div>
    </li>
  );
}

export function People() {
  const list = useReading("people", () => ask("channels.pair.list"));
  useNews("attention", list.again);
  const [asked, setAsked] = useState<Person>();
  const remove = ({ channel, accountId, peerId }: Person): void => {
    ask("channels.pair.remove", { channel, accountId, peerId })
      .then(() => say("Removed."), complain)
      .finally(list.again);
  };
  return (
    <>
      <h2>People</h2>
      <p class="soft">
        People who asked to write to an agent. Those in allowFrom of the configuration may, too.
      </p>
      <Awaited {...list} />
      {list.value?.peers.length === 0 && <p class="empty">Nobody has asked</p>}
      <ul class="out-rows card" aria-label="People">
        {list.value?.peers.map((person) => (
          <Row
            key={JSON.stringify([person.channel, person.accountId, person.peerId])}
            person={person}
            onRemove={() => setAsked(person)}
          />
        ))}
      </ul>
      {asked !== undefined && (
        <Confirm
          title="Remove this person?"
          action="Remove"
          onConfirm={() => remove(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            The decision about <Name text={asked.name ?? asked.peerId} /> is deleted. With the next message
            the person asks again, and gets no answer before you allow it.
          </p>
        </Confirm>
      )}
    </>
  );
}
