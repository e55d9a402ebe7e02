// Sends the notifications of A2A clients: one POST request for each ended task and address.

import { A2A_MEDIA_TYPE } from "../core/a2a.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { PUSH, type PushText } from "../flows/delivery/push.ts";
import { getPushConfig } from "../store/queries/runs/push-configs.ts";
import type { Db } from "../store/sql.ts";
import type { World } from "../world.ts";
import type { Channel } from "./channel.ts";
import { postNews } from "./webhook.ts";

interface PushParts {
  readonly settings: Pick<Settings, "a2a">;
  readonly db: Db;
  readonly world: World;
  /** Returns whether the client of the task in this session may still read it. */
  mayRead(sessionKey: string): Promise<boolean>;
}

/**
 * Creates the channel. An attempt can be repeated, because a notification only says that a task has ended.
 * Each attempt checks that the host may still be notified, and that the client may still read the task (I13).
 */
export function createPushes({ settings, db, world, mayRead }: PushParts): Channel {
  return {
    id: PUSH,
    deduplicates: true,
    async deliver({ text, sessionKey }) {
      const { runId, configId, body } = JSON.parse(text) as PushText;
      const config = await getPushConfig(db, runId, configId);
      if (config === undefined) return { kind: "refused", error: "the client no longer wants it" };
      const { url, token, scheme, credentials } = config;
      if (!settings.a2a.notifyHosts.includes(new URL(url).host))
        return { kind: "refused", error: "a2a.notifyHosts no longer has the host" };
      if (!(await mayRead(sessionKey)))
        return { kind: "refused", error: "the token that named the address may no longer read the task" };
      const headers = {
        "content-type": A2A_MEDIA_TYPE,
        ...(token === "" ? {} : { "x-a2a-notification-token": token }),
        ...(credentials === "" ? {} : { authorization: `${scheme} ${credentials}` }),
      };
      return postNews({ url, headers, body: JSON.stringify(body) }, world);
    },
  };
}
