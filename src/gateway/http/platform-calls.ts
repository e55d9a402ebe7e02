// Serves the web hooks of chat platforms: GET and POST /channels/<channel>/<account>.
// PC1: these calls have no token: the channel checks the platform's signature. Until that has succeeded, no
// work is done, and the memory for bodies is limited.
// An unauthenticated sender gets only a status code.
// PC3: a 5xx status means that the call was not stored and the platform must send it again. An acknowledged
//      call is stored (I2).
// PC4: unauthenticated senders can't fill the log: their calls to one account cause at most one line a
// minute.

import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { accountName } from "../../channels/accounts.ts";
import type { Channel, PlatformAnswer, PlatformCall } from "../../channels/channel.ts";
import { CODES, ok, type Result } from "../../core/shapes/errors.ts";
import type { World } from "../../world.ts";
import type { RouteParts } from "./http.ts";
import type { Door, Env } from "./request.ts";

/** Maximum bytes of a body, enough for the largest that a platform sends. */
const BODY_MAX_BYTES = 3 * 1024 * 1024;
const PATH = /^\/channels\/([a-z][a-z0-9_-]{0,31})\/([a-z0-9][a-z0-9_-]{0,31})$/;
const TELL_EVERY_MS = 60_000;
const RETRY_SECONDS = 30;

type Callable = Channel & Required<Pick<Channel, "called">>;

/** A channel that accepts web hooks of its platform, and the account that this request is for. */
interface Called {
  readonly channel: Callable;
  readonly accountId: string;
  readonly name: string;
}

/**
 * Logs unauthenticated calls of an account: the first one at once, then at most one line a minute with their
 * number.
 */
function createTellTale({ clock, log }: World) {
  const told = new Map<string, { untilMs: number; unsaid: number }>();
  return (account: string, status: number): void => {
    const last = told.get(account);
    if (last !== undefined && clock.monotonic() < last.untilMs) {
      last.unsaid += 1;
      return;
    }
    // The map needs no limit: it has at most one entry for each account.
    told.set(account, { untilMs: clock.monotonic() + TELL_EVERY_MS, unsaid: 0 });
    log.warn(
      { account, status, count: (last?.unsaid ?? 0) + 1 },
      "refused a call without a valid signature: the configured secret is wrong, or the request is forged",
    );
  };
}

function takesCalls(channel: Channel | undefined): channel is Callable {
  return channel?.called !== undefined;
}

/** Creates the handler of /channels/. */
export function createPlatformDoor({ deps, unproven }: RouteParts): Door {
  const { channels, engine, world } = deps;
  const tellForged = createTellTale(world);
  const answer = (c: Context<Env>, { status, body }: PlatformAnswer): Response =>
    c.text(body, status as ContentfulStatusCode);
  const again = (c: Context<Env>): Response => {
    c.header("retry-after", String(RETRY_SECONDS));
    return answer(c, { status: 503, body: "the gateway cannot handle the call now; send it again" });
  };
  const ask = async (c: Context<Env>, called: Called, body: Uint8Array): Promise<Result<Response>> => {
    const { channel, accountId, name } = called;
    const { method } = c.req;
    const query = new URL(c.req.url).searchParams;
    const call: PlatformCall = { accountId, method, query, header: (one) => c.req.header(one), body };
    try {
      const given = await channel.called(call);
      if (given.status === 401 || given.status === 403) tellForged(name, given.status);
      return ok(answer(c, given));
    } catch (error) {
      world.log.warn({ err: error, account: name }, "could not store a web hook request of a chat platform");
      return ok(again(c));
    }
  };
  return async (c) => {
    const [, id = "", accountId = ""] = PATH.exec(c.req.path) ?? [];
    const channel = channels.get(id);
    const name = accountName(id, accountId);
    const isOurs = takesCalls(channel) && channel.accounts?.some((account) => account.name === name);
    const called = isOurs === true ? { channel, accountId, name } : undefined;
    if (called === undefined) return answer(c, { status: 404, body: "not found" });
    const { method } = c.req;
    if (method !== "GET" && method !== "POST") {
      c.header("allow", "GET, POST");
      return answer(c, { status: 405, body: "GET or POST" });
    }
    if (!engine.accepting().ok) return again(c);
    const done = await unproven.read(c, BODY_MAX_BYTES, async (body) => {
      // A truncated body arrives here as an empty one. It gets a 400, and is not reported as a wrong
      // signature.
      if (method === "POST" && body.length === 0) return ok(answer(c, { status: 400, body: "no body" }));
      return ask(c, called, body);
    });
    if (done.ok) return done.value;
    if (done.code === "rate_limited") c.header("retry-after", String(RETRY_SECONDS));
    return answer(c, { status: CODES[done.code].http, body: done.error });
  };
}
