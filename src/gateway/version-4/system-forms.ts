// Translates events for a session, and devices with their pairing.

import type { NodeListRow, PairRequestRow } from "../../contract/methods/nodes.ts";
import type { PayloadOf } from "../../contract/methods.ts";
import { type Fields, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import type { Form } from "./form.ts";

/** Such a client expects that a session that it names is woken in both modes. */
export const wakeNamed: Form<"wake"> = {
  method: "wake",
  params: (given) => ok(given.sessionKey === undefined ? given : { ...given, mode: "now" }),
};

/** The beginning of a line that only changes the presence of a device. */
const PRESENCE = "Node:";

/** The other params describe the device that sends the event. */
export const systemEvent: Form<"wake"> = {
  method: "wake",
  params({ text, sessionKey, wake, idempotencyKey }) {
    if (textOf(text)?.trimStart().startsWith(PRESENCE) === true) {
      return fail("invalid_argument", "presence lines are not kept", {
        hint: "system-presence lists the connected clients.",
      });
    }
    const mode = wake === true ? "now" : "next-heartbeat";
    return ok({ text, mode, ...optional({ sessionKey, idempotencyKey }) });
  },
};

type DeviceId = Pick<PayloadOf<"device.token.list">["devices"][number], "deviceId" | "role">;

function requestShown({ requestId, nodeId: deviceId, createdAtMs: ts, ...request }: PairRequestRow): Fields {
  const { displayName, platform, remoteIp } = request;
  return {
    requestId,
    deviceId,
    displayName,
    platform,
    remoteIp,
    role: "node",
    roles: ["node"],
    scopes: [],
    ts,
  };
}

/** Returns the name that an operator gave to a node. */
function nodeName(nodes: readonly NodeListRow[] = [], { deviceId, role }: DeviceId): string | undefined {
  return role === "node" ? nodes.find(({ nodeId }) => nodeId === deviceId)?.displayName : undefined;
}

/** Only nodes need to be accepted here, so only they are pending. */
export const devices: Form<"device.token.list"> = {
  method: "device.token.list",
  async payload(page, _, { read }) {
    const nodes = await read("node.pair.list");
    return {
      pending: (nodes?.pending ?? []).map(requestShown),
      paired: page.devices.map(({ lastUsedAtMs: lastSeenAtMs, ...device }) => ({
        ...device,
        ...optional({ operatorLabel: nodeName(nodes?.paired, device) }),
        roles: [device.role],
        tokens: [{ role: device.role, createdAtMs: device.createdAtMs }],
        lastSeenAtMs,
      })),
    };
  },
};

/** Other devices have the name that their client sends. */
export const renamed: Form<"node.rename"> = {
  method: "node.rename",
  params: ({ deviceId, label, ...rest }) => ok({ ...rest, nodeId: deviceId, displayName: label }),
  payload: ({ nodeId: deviceId, displayName: label }) => ({ deviceId, label }),
};
