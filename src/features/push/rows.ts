// The commands for devices that are notified.

import type { Link, Reply } from "../../cli/gateway-link.ts";
import { onlyMatch } from "../../cli/only-match.ts";
import { asks, type Commands } from "../../cli/row.ts";
import type { PushDeviceRow } from "./contract.ts";

const ID_SHOWN_CHARS = 12;
const DEVICE = { "<device>": "Name or id of the device" };

/** Finds a device by its name, its id or the beginning of its id. */
async function findDevice(
  link: Link,
  { device }: { readonly device: string },
): Promise<Reply<Pick<PushDeviceRow, "id" | "name">>> {
  if (device === "ntfy") return { ok: true, value: { id: device, name: device } };
  const list = await link.request("push.list", {});
  if (!list.ok) return list;
  const { devices } = list.value;
  const found = devices.filter(({ id, name }) => name === device || (device !== "" && id.startsWith(device)));
  return onlyMatch(device, found, {
    kind: "notified device",
    all: devices,
    several: (ids) => `Several devices have this name: ${ids}. Give an id.`,
    list: "push list",
  });
}

export const PUSH: Commands = {
  push: {
    summary: "Devices that are notified of what needs you; the inbox of the page adds them",
    commands: {
      list: asks({
        summary: "List the devices",
        isDefault: true,
        ask: (link) => link.request("push.list", {}),
        print(cli, { devices, ntfy }) {
          const columns = {
            ID: ({ id }: PushDeviceRow) => id.slice(0, ID_SHOWN_CHARS),
            NAME: ({ name }: PushDeviceRow) => name,
            SERVICE: ({ service }: PushDeviceRow) => service,
          };
          cli.table(devices, columns, "No device is notified. Add one with the button in the page's inbox.");
          if (ntfy) cli.say("The topic of push.ntfy is notified, too.");
        },
      }),
      remove: asks({
        summary: "Remove a device",
        args: DEVICE,
        find: findDevice,
        ask: (link, _, { id }) => link.request("push.remove", { id }),
        print: (cli, _, { name }) => cli.say(`removed ${name}`),
      }),
      test: asks({
        summary: "Send a notification to a device, or to ntfy",
        args: DEVICE,
        find: findDevice,
        ask: (link, _, { id }) => link.request("push.test", { id }),
        print: (cli, _, { name }) =>
          cli.say(`queued for ${name}; npx parley-gateway deliveries shows failures`),
      }),
    },
  },
};
