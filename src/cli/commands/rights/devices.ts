// Implements `parley devices`: lists the devices that have a device token, and revokes tokens.

import { quoted } from "../../../core/text/cut.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";
import { age, table } from "../../layout.ts";

const DAY_MS = 86_400_000;
const ID_SHOWN_CHARS = 12;

export async function listDevices(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("device.token.list", {});
    if (!list.ok) return cli.fail(list);
    const { ts, devices } = list.value;
    const rows = devices.map((row) => [
      row.deviceId.slice(0, ID_SHOWN_CHARS),
      row.displayName,
      row.platform,
      row.role,
      `${age(row.lastUsedAtMs, ts)} ago`,
      `in ${Math.ceil((row.expiresAtMs - ts) / DAY_MS)} days`,
    ]);
    if (rows.length === 0) cli.line("No device has a device token.");
    else
      for (const line of table(["ID", "NAME", "PLATFORM", "ROLE", "CONNECTED", "EXPIRES"], rows))
        cli.line(line);
    cli.document(list.value);
    return EXIT.done;
  });
}

export async function revokeDevice(cli: Cli, [wanted = ""]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("device.token.list", {});
    if (!list.ok) return cli.fail(list);
    const start = wanted.trim().toLowerCase();
    const ids = list.value.devices.map((row) => row.deviceId).filter((id) => id.startsWith(start));
    const [deviceId, ...others] = new Set(ids);
    if (start === "" || deviceId === undefined || others.length > 0) {
      const shown = quoted(wanted, 80);
      const error =
        ids.length === 0
          ? `no device with a token has the id ${shown}`
          : `several device ids begin with ${shown}`;
      return cli.fail(
        { code: "usage", error, hint: "List the ids: npx parley-gateway devices list" },
        EXIT.usage,
      );
    }
    const revoked = await link.request("device.token.revoke", { deviceId });
    if (!revoked.ok) return cli.fail(revoked);
    cli.line(safeLine(`Revoked the tokens of device ${deviceId.slice(0, ID_SHOWN_CHARS)}.`));
    cli.document(revoked.value);
    return EXIT.done;
  });
}
