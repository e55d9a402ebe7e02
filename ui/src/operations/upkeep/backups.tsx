// The tab that lists the backups of the store. It can also make a backup, and then shows the progress.

import { useState } from "preact/hooks";
import type { BackupList } from "../../../../src/contract/methods/upkeep.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { ago, clockTime, counted, size } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { complain } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { usePolling } from "../polling.ts";
import { ResourceList } from "../resource-list.tsx";

const EVERY_MS = { running: 1_000, idle: 15_000 };

function Running({ running }: { running: NonNullable<BackupList["running"]> }) {
  const { bytes, totalBytes, startedAtMs } = running;
  const isCopied = totalBytes !== undefined && bytes >= totalBytes;
  const words =
    totalBytes === undefined
      ? `${size(bytes)} copied`
      : isCopied
        ? "Copied. Checking the copy…"
        : `${size(bytes)} of ${size(totalBytes)} copied`;
  return (
    <div class="stack note tone-busy">
      {totalBytes === undefined || isCopied ? (
        <progress aria-label="Backup" />
      ) : (
        <progress aria-label="Backup" max={totalBytes} value={bytes} />
      )}
      <p>
        {words} · started {ago(startedAtMs, tick.value)}
      </p>
    </div>
  );
}

function Last({ list: { folder, backups, total, failed, running } }: { list: BackupList }) {
  const [last] = backups;
  const now = tick.value;
  return (
    <div role="status">
      <p>
        {last === undefined ? (
          "No backup yet."
        ) : (
          <>
            Last backup: <strong>{ago(last.createdAtMs, now)}</strong>, {size(last.bytes)}.
          </>
        )}
      </p>
      <p class="soft raw">
        {counted(total, "backup")} in <Name text={folder} />
        {total > backups.length && `, the newest ${backups.length} listed`}. To restore one, run{" "}
        <code>npx parley-gateway store restore FILE</code>.
      </p>
      {failed !== undefined && running === undefined && (
        <p class="small row-error tone-bad">
          The backup failed {ago(failed.atMs, now)}: <Name text={failed.error} />
        </p>
      )}
    </div>
  );
}

export function BackupsTab() {
  const [isAsking, setAsking] = useState(false);
  const list = useReading("backups", () => ask("store.backups"));
  const { value, again } = list;
  const isBusy = isAsking || value?.running !== undefined;
  usePolling(isBusy ? EVERY_MS.running : EVERY_MS.idle, again);
  const begin = (): void => {
    if (isBusy) return;
    setAsking(true);
    ask("store.backup")
      .catch(complain)
      .then(again)
      .finally(() => setAsking(false));
  };
  return (
    <ResourceList
      title="Backups"
      words={
        <>
          A backup has the whole store as of one moment, with everything that anybody said: keep it private.
          It does not have the configuration.
        </>
      }
      head={<Button text="Back up now" class="primary" aria-disabled={isBusy} onClick={begin} />}
      list={list}
      rows={value?.backups}
      row={({ name, bytes, createdAtMs }) => ({
        key: name,
        body: <Name as="span" class="raw" text={name} />,
        when: (
          <div class="row-when small soft">
            {size(bytes)} <span>{clockTime(createdAtMs, true)}</span>
          </div>
        ),
      })}
    >
      {value?.running !== undefined && <Running running={value.running} />}
      {value !== undefined && <Last list={value} />}
    </ResourceList>
  );
}
