// Shows the people who may write to agents on channels, and takes this right away.

import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { ago } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { ResourceList } from "./resource-list.tsx";

const STATES = {
  pending: { text: "asks", tone: "warn" },
  approved: { text: "allowed", tone: "good" },
  blocked: { text: "denied", tone: "bad" },
} as const;

export function People() {
  const list = useReading("people", () => ask("channels.pair.list"));
  useNews("attention", list.again);
  return (
    <ResourceList
      title="People"
      words="People who asked to write to an agent. People whom the configuration lets write are not listed."
      list={list}
      rows={list.value?.peers}
      empty="Nobody has asked"
      row={({ channel, accountId, peerId, agentId, name = peerId, state, askedAt, decidedAt = askedAt }) => ({
        key: JSON.stringify([channel, accountId, peerId]),
        state: <State state={state} {...STATES[state]} />,
        name,
        beside: <span class="soft">{ago(decidedAt, tick.value)}</span>,
        facts: [`${channel}:${accountId} · id ${peerId} · writes to the agent ${agentId}`],
        link: state === "pending" ? <a href={hrefOf({ view: "inbox" })}>Decide in the inbox</a> : undefined,
        actions:
          state === "pending"
            ? []
            : [
                {
                  label: "Remove",
                  about: name,
                  class: "danger",
                  run: () => ask("channels.pair.remove", { channel, accountId, peerId }),
                  done: "Removed.",
                  question: {
                    title: "Remove this person?",
                    text: (
                      <p>
                        The decision about <Name text={name} /> is deleted. With the next message the person
                        asks again, and gets no answer before you allow it.
                      </p>
                    ),
                  },
                },
              ],
      })}
    />
  );
}
