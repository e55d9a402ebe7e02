// Example sentences for an agent: a click puts one into the composer of a session. The offline model
// understands them, too, and gets one of its own.

import { agents } from "../agents/known.ts";
import { openToWrite } from "../conversation/drafts.ts";
import { defaults, may } from "../gateway.ts";
import { Button } from "./button.tsx";
import "./examples.css";
import { Name } from "./name.tsx";
import { nameOf } from "./names.ts";

export const OFFLINE_PROVIDER = "offline/";

/** `sessionKey`: the session that gets the sentence. Default: the main one of the default agent. */
export function Examples({ sessionKey = defaults.value?.mainSessionKey }: { sessionKey?: string }) {
  const { value } = agents;
  if (value === undefined || sessionKey === undefined || !may("operator.write")) return null;
  const own = /^agent:([^:]+)/.exec(sessionKey)?.[1] ?? value.defaultId;
  const other = value.agents.find(({ id }) => id !== own)?.id;
  const isOffline = value.agents.find(({ id }) => id === own)?.model.startsWith(OFFLINE_PROVIDER) === true;
  const sentences = [
    other === undefined ? "Who are you?" : `Ask ${other}: what should we check before a release?`,
    // A command of the offline model.
    ...(isOffline ? ["Spawn 3 jobs: wait 2 seconds, then say part {n} is done"] : []),
    "Show my sessions",
  ];
  return (
    <div class="examples">
      <p id="examples-title">
        Choose a sentence for <Name text={nameOf(sessionKey)} />, then send it:
      </p>
      <ul class="line" aria-labelledby="examples-title">
        {sentences.map((sentence) => (
          <li key={sentence}>
            <Button
              text={sentence}
              onClick={() => {
                openToWrite(sessionKey, sentence);
              }}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}
