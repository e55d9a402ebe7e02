// Shows the devices that have their own token, and revokes these tokens.

import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { ago, counted, DAY_MS } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { useReading } from "../../parts/reading.ts";
import { joinWords } from "../../parts/words.ts";
import { ResourceList } from "../resource-list.tsx";

const ID_SHOWN_CHARS = 12;

export function leftWords(expiresAtMs: number, nowMs: number): string {
  const days = Math.round((expiresAtMs - nowMs) / DAY_MS);
  return days < 1 ? "expires within a day" : `expires in ${counted(days, "day")}`;
}

export function Devices() {
  const list = useReading("devices", () => ask("device.token.list"));
  const now = tick.value;
  return (
    <ResourceList
      title="Devices"
      words="Apps that signed in with a device key. Each has the rights of the token that it signed in with."
      list={list}
      rows={list.value?.devices}
      empty="No devices"
      row={({ deviceId, displayName, platform, role, createdAtMs, lastUsedAtMs, expiresAtMs }) => ({
        key: `${deviceId} ${role}`,
        name: displayName,
        beside: <span class="chip">{role}</span>,
        facts: [
          <Name key="id" text={`${platform} · ${deviceId.slice(0, ID_SHOWN_CHARS)}`} title={deviceId} />,
          joinWords([
            `connected ${ago(lastUsedAtMs, now)}`,
            `known since ${ago(createdAtMs, now)}`,
            leftWords(expiresAtMs, now),
          ]),
        ],
        actions: [
          {
            label: "Revoke",
            about: displayName,
            class: "danger",
            run: () => ask("device.token.revoke", { deviceId, role }),
            done: "Revoked.",
            question: {
              title: "Revoke the token of this device?",
              text: (
                <p>
                  <Name text={displayName} /> is disconnected, and must sign in with a gateway token again.
                </p>
              ),
            },
          },
        ],
      })}
    />
  );
}
