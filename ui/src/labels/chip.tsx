// Shows that a session has read content from outside, what it read, and a button that releases it.

import { LABELS } from "../../../src/core/shapes/labels.ts";
import { ask, coversAll, has, may } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { Dialog, DialogButton } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { clockTime, counted } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";

const WORDS = { outside: "From outside", private: "Private" } as const;

const ASKS =
  "An owner is asked before it sends anything to another place, runs a command that nothing contains, " +
  "or makes a job.";

function Sources({ sessionKey, onClose }: { sessionKey: string; onClose: () => void }) {
  const { value, ...reading } = useReading(`labels ${sessionKey}`, () =>
    ask("labels.explain", { sessionKey }),
  );
  const { labels, readIn = [], mode } = value ?? {};
  return (
    <Dialog title="Texts that this session has read" onClose={onClose}>
      <Awaited value={value} {...reading} />
      {LABELS.filter((label) => labels?.[label]?.length).map((label) => (
        <section key={label}>
          <h3>{WORDS[label]}</h3>
          <ul class="bullets">
            {labels?.[label]?.map(({ source, since, runId }) => {
              const place = readIn.find((one) => one.source === source && one.runId === runId);
              const other = place?.sessionKey === sessionKey ? undefined : place?.sessionKey;
              return (
                <li key={source}>
                  <Name text={source} />
                  {since > 0 && `, since ${clockTime(since, true)}`}
                  {other !== undefined && ", in "}
                  {other !== undefined && <SessionLink sessionKey={other} />}
                </li>
              );
            })}
          </ul>
        </section>
      ))}
      <p class="soft">{mode === "ask" ? ASKS : ""}</p>
    </Dialog>
  );
}

export function OutsideChip(props: { sessionKey: string; outside: readonly string[] | undefined }) {
  const { sessionKey, outside = [] } = props;
  if (outside.length === 0 || !has("labels.explain")) return null;
  const release = (): Promise<void> =>
    ask("labels.release", { sessionKey }).then(
      () => say("Released. The session acts freely until it reads something from outside again."),
      complain,
    );
  return (
    <>
      <DialogButton
        text={`outside: ${outside.length === 1 ? outside[0] : counted(outside.length, "source")}`}
        class="chip tone-warn"
        data-act="Texts that this session has read"
        dialog={(onClose) => <Sources sessionKey={sessionKey} onClose={onClose} />}
      />
      {may("operator.admin") && coversAll() && (
        <Button
          text="Release it"
          class="quiet small"
          data-act="Release the session from what it has read"
          title="It acts freely until it reads something from outside again"
          onClick={() => void release()}
        />
      )}
    </>
  );
}
