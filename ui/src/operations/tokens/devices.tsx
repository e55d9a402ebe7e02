// Shows the devices that have their own token, and revokes these tokens.

import { useState } from "preact/hooks";
import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { ago, counted, DAY_MS } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";

type Device = PayloadOf<"device.token.list">["devices"][number];

const ID_SHOWN_CHARS = 12;

/** Describes how long a token is still valid. */
export function leftWords(expiresAtMs: number, nowMs: number): string {
  const days = Math.round((expiresAtMs - nowMs) / DAY_MS);
  return days < 1 ? "expires within a day" : `expires in ${counted(days, "day")}`;
}

function Row({ device, onRevoke }: { device: Device; onRevoke: () => void }) {
  const now = tick.value;
  const { deviceId, displayName, platform, role, createdAtMs, lastUsedAtMs, expiresAtMs } = device;
  return (
    <li class="out-row token-row">
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={displayName} />
          </strong>
          <span class="chip">{role}</span>
        </p>
        <p class="soft">
          <Name text={`${platform} · ${deviceId.slice(0, ID_SHOWN_CHARS)}`} title={deviceId} />
        </p>
        <p class="soft">
          connected {ago(lastUsedAtMs, now)} · known since {ago(createdAtMs, now)} ·{" "}
          {leftWords(expiresAtMs, now)}
        </p>
      </div>
      <div class="row-actions">
        <button type="button" class="danger" aria-label={`Revoke ${displayName}`} onClick={onRevoke}>
          Revoke
        </button>
      </div>
    </li>
  );
}

export function Devices() {
  const list = useReading("devices", () => ask("device.token.list"));
  const [asked, setAsked] = useState<Device>();
  const revoke = ({ deviceId, role }: Device): void => {
    ask("device.token.revoke", { deviceId, role })
      .then(() => say("Revoked."), complain)
      .finally(list.again);
  };
  return (
    <>
      <h2 class="tokens-title">Devices</h2>
      <p class="soft">
        Apps that signed in with a device key. Each has the rights of the token that it signed in with.
      </p>
      <Awaited {...list} />
      {list.value?.devices.length === 0 && <p class="empty">No devices</p>}
      <ul class="out-rows card" aria-label="Devices">
        {list.value?.devices.map((device) => (
          <Row key={`${device.deviceId} ${device.role}`} device={device} onRevoke={() => setAsked(device)} />
        ))}
      </ul>
      {asked !== undefined && (
        <Confirm
          title="Revoke the token of this device?"
          action="Revoke"
          onConfirm={() => revoke(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            <Name text={asked.displayName} /> is disconnected, and must sign in with a gateway token again.
          </p>
        </Confirm>
      )}
    </>
  );
}
