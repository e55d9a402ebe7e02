// Sessions and wait helpers that the cluster tests share.

import { type Cluster, type ClusterProcess, type OpenGround, openCluster } from "../kit/engine/cluster.ts";
import { makeSessions } from "../kit/engine/engine.ts";
import type { FlowAppOptions, Play } from "../kit/engine/flow-app.ts";

export const MAIN = "agent:main:main";
export const CHATS = ["agent:main:chat:one", "agent:main:chat:two", "agent:main:chat:three"];

/** Makes a promise that a test resolves, and counts the callers that wait for it. */
export function gate() {
  const opened = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    async pass(): Promise<void> {
      reached.resolve();
      await opened.promise;
    },
  };
}

export async function join(
  cluster: Cluster,
  plays: Record<string, Play>,
  more: Partial<FlowAppOptions> = {},
) {
  const process = await cluster.join({ plays, ...more });
  await makeSessions(process.app.store, ...CHATS);
  return process;
}

export async function two(
  openGround: OpenGround,
  plays: Record<string, Play>,
  more: Partial<FlowAppOptions> = {},
): Promise<{ cluster: Cluster; a: ClusterProcess; b: ClusterProcess }> {
  const cluster = await openCluster(openGround);
  return { cluster, a: await join(cluster, plays, more), b: await join(cluster, plays, more) };
}
