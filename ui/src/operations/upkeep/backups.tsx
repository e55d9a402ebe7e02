// The tab that lists the backups of the store. It can also make a backup, and then shows the progress.

import { useState } from "preact/hooks";
import type { BackupList } from "../../../../src/contract/methods/upkeep.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { ago, clockTime, counted, size } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { complain } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { usePolling } from "../polling.ts";
import "../rows.css";
import "./upkeep.css";

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
    <div class="upkeep-progress card">
      {totalBytes === undefined || isCopied ? (
        <progress aria-label="Backup" />
      ) : (
        <progress aria-label="Backup" max={totalBytes} value={bytes} />
      )}
      <p>
        {words} <span class="soft">· started {ago(startedAtMs, tick.value)}</span>
      </p>
    </div>
  );
}

function Last({ list: { backups, failed, running } }: { list: BackupList }) {
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
      {failed !== undefined && running === undefined && (
        <p class="row-error tone-bad">
          The backup failed {ago(failed.atMs, now)}: <Name text={failed.error} />
        </p>
      )}
    </div>
  );
}

function Files({ list: { folder, backups, total } }: { list: BackupList }) {
  return (
    <>
      <h3 class="upkeep-title">{counted(total, "backup")}</h3>
      <p class="soft upkeep-text">
        In <Name text={folder} />. To restore one, run <code>npx parley-gateway store restore FILE</code>.
      </p>
      <ul class="out-rows card" aria-label="Backups">
        {backups.map(({ name, bytes, createdAtMs }) => (
          <li key={name} class="out-row upkeep-file">
            <span class="upkeep-text">
              <Name text={name} />
            </span>
            <span class="number">{size(bytes)}</span>
            <span class="soft number">{clockTime(createdAtMs, true)}</span>
          </li>
        ))}
      </ul>
      {total > backups.length && <p class="soft">Only the newest {backups.length} are listed.</p>}
    </>
  );
}

export function BackupsTab() {
  const list = useReading("backups", () => ask("store.backups"));
  const { value, again } = list;
  const [asked, setAsked] = useState(false);
  const isBusy = asked || value?.running !== undefined;
  usePolling(isBusy ? EVERY_MS.running : EVERY_MS.idle, again);
  const begin = (): void => {
    if (isBusy) return;
    setAsked(true);
    ask("store.backup")
      .catch(complain)
      .then(again)
      .finally(() => setAsked(false));
  };
  return (
    <>
      <h2>Backups</h2>
      <p class="soft">
        A backup has the whole store as of one moment, with everything that anybody said: keep it private. It
        does not have the configuration.
      </p>
      <div class="bar out-filters">
        <button type="button" class="primary" aria-disabled={isBusy} onClick={begin}>
          Back up now
        </button>
      </div>
      <Awaited {...list} />
      {value?.running !== undefined && <Running running={value.running} />}
      {value !== undefined && <Last list={value} />}
      {value !== undefined && <Files list={value} />}
    </>
  );
}
