// The dialog that lists the failed jobs of a session.

import { listSessions } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Doing } from "../parts/doing.tsx";
import { Awaited } from "../parts/failure.tsx";
import { SessionLink } from "../parts/name.tsx";
import { sessionName } from "../parts/names.ts";
import { useReading } from "../parts/reading.ts";

const SHOWN_MAX = 100;

export function FailedJobs({ sessionKey, onClose }: { sessionKey: string; onClose: () => void }) {
  const reading = useReading(`failed jobs ${sessionKey}`, () =>
    listSessions({ spawnedBy: sessionKey, only: "failed", includeArchived: true, limit: SHOWN_MAX }),
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
