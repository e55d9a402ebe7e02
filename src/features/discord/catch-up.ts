// Reads missed messages after an interruption that was too long for Discord to resume the session.
// DU1: for each channel from which messages came before, the missed messages are read in order. At the limit,
//      only the newest page of the others is read, so the latest messages always arrive. A message that is
//      already stored is recognised by its id.

import { type Fields, objectsOf } from "../../core/json.ts";
import type { World } from "../../world.ts";
import { type Places, seen } from "./channel-cache.ts";
import { idOf, idOfTime, isNewer } from "./ids.ts";
import { patiently } from "./problem.ts";
import type { Marks } from "./read-position.ts";
import type { Rest } from "./rest.ts";

/** Maximum number of messages per request, set by Discord. */
const PAGE = 100;
/** Maximum number of pages that are read in order for one channel. */
const PAGES_MAX = 50;
/** Maximum age of a missed message. Older messages are not read. */
const AGE_MAX_MS = 24 * 3_600_000;

interface Around {
  readonly world: World;
  readonly rest: Rest;
  readonly places: Places;
  readonly marks: Marks;
  readonly signal: AbortSignal;
}

/** Returns messages after `after`, oldest first: the page that follows it, or the newest page. */
async function readPage(
  { world, rest, signal }: Around,
  channelId: string,
  { after, newest }: { readonly after: string; readonly newest: boolean },
): Promise<[id: string, message: Fields][]> {
  const query = newest ? { limit: PAGE } : { after, limit: PAGE };
  const answer = await patiently(world, signal, () =>
    seen(rest.ask((api, inner) => api.channels.getMessages(channelId, query, { signal: inner }), signal)),
  );
  return objectsOf(answer, PAGE)
    .flatMap((message): [string, Fields][] => {
      const id = idOf(message.id);
      return id === undefined || !isNewer(id, after) ? [] : [[id, message]];
    })
    .sort(([left], [right]) => (isNewer(left, right) ? 1 : -1));
}

/** Reads the missed messages of one channel, oldest first. */
async function readChannel(
  around: Around,
  channelId: string,
  afterId: string,
  take: (message: Fields) => Promise<void>,
): Promise<void> {
  const { world, signal } = around;
  let after = afterId;
  for (let page = 0; page <= PAGES_MAX; page += 1) {
    const newest = page === PAGES_MAX;
    const messages = await readPage(around, channelId, { after, newest });
    if (newest && messages.length === PAGE) {
      const told = { channel: "discord", chat: channelId };
      world.log.warn(told, `too many messages were missed: those before the newest ${PAGE} may be skipped`);
    }
    for (const [id, message] of messages) {
      signal.throwIfAborted();
      await take(message);
      after = id;
    }
    if (messages.length < PAGE) return;
  }
}

/** Passes each missed message to `take`, which resolves after the message is stored. */
export async function catchUp(around: Around, take: (message: Fields) => Promise<void>): Promise<void> {
  const { world, places, marks, signal } = around;
  const oldest = idOfTime(world.clock.now() - AGE_MAX_MS);
  for (const [channelId, lastId] of await marks.channels()) {
    signal.throwIfAborted();
    const place = await patiently(world, signal, () => places.channelInfoOf(channelId, signal));
    if (place === undefined) continue;
    const after = isNewer(lastId, oldest) ? lastId : oldest;
    const { guildId } = place;
    await readChannel(around, channelId, after, (message) =>
      take(guildId === undefined ? message : { ...message, guild_id: guildId }),
    );
  }
}
