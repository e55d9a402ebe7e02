// Translates devices and their pairing for clients of version 4.

import type { PayloadOf } from "../../contract/methods.ts";
import type { Fields } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { type Form, form } from "../../gateway/version-4/form.ts";
import type { NodeListRow, PairRequestRow } from "./contract.ts";

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
const devices: Form<"device.token.list"> = {
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
const renamed: Form<"node.rename"> = {
  method: "node.rename",
  params: ({ deviceId, label, ...rest }) => ok({ ...rest, nodeId: deviceId, displayName: label }),
  payload: ({ nodeId: deviceId, displayName: label }) => ({ deviceId, label }),
};

export const NODE_FORMS = {
  "device.pair.list": devices,
  "device.pair.approve": form({
    method: "node.pair.approve",
    payload: ({ requestId, node }) => ({ requestId, device: { ...node, deviceId: node.nodeId } }),
  }),
  "device.pair.reject": form({
    method: "node.pair.reject",
    payload: ({ requestId, nodeId: deviceId }) => ({ requestId, deviceId }),
  }),
  "device.pair.rename": renamed,
};
