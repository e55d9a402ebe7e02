// Sends the notifications of A2A clients: one POST request for each ended task and address.

import { A2A_MEDIA_TYPE } from "../core/a2a.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { PUSH, type PushText } from "../flows/delivery/push.ts";
import { getPushConfig } from "../store/queries/runs/push-configs.ts";
import type { Db } from "../store/sql.ts";
import type { World } from "../world.ts";
import type { Channel } from "./channel.ts";
import { postNews } from "./webhook.ts";

/**
 * Creates the channel. An attempt can be repeated, because a notification only says that a task has ended.
 * Each attempt checks that the host may still be notified.
 */
export function createPushes(settings: Pick<Settings, "a2a">, db: Db, world: World): Channel {
  return {
    id: PUSH,
    deduplicates: true,
    async deliver({ text }) {
      const { runId, configId, body } = JSON.parse(text) as PushText;
      const config = await getPushConfig(db, runId, configId);
      if (config === undefined) return { kind: "refused", error: "the client no longer wants it" };
      const { url, token, scheme, credentials } = config;
      if (!settings.a2a.notifyHosts.includes(new URL(url).host))
        return { kind: "refused", error: "a2a.notifyHosts no longer has the host" };
      const headers = {
        "content-type": A2A_MEDIA_TYPE,
        ...(token === "" ? {} : { "x-a2a-notification-token": token }),
        ...(credentials === "" ? {} : { authorization: `${scheme} ${credentials}` }),
      };
      return postNews({ url, headers, body: JSON.stringify(body) }, world);
    },
  };
}
