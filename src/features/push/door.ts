// Serves POST /push/answer, to which the buttons of notifications lead. The token in the body names the
// device, the request and the decision; nothing else of the request counts.
// PA1: a GET decides nothing, because browsers and programs that preview links make such requests on their
//      own.
// PA2: a button has the rights that its device has now. After the request was decided, or has expired, it
//      does nothing and says so.

import type { Context } from "hono";
import type { BodyAnswerOf } from "../../contract/bodies.ts";
import { checkBody } from "../../contract/check.ts";
import { readJson } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { answerPermission } from "../../flows/permission.ts";
import { tokensOf } from "../../gateway/auth.ts";
import type { RouteParts } from "../../gateway/http/http.ts";
import { type Door, type Env, nothingHere, refuse } from "../../gateway/http/request.ts";
import { readButton } from "./answer.ts";
import { readerAt } from "./rights.ts";
import { pushKey, sealingKey } from "./store.ts";

const BODY_MAX_BYTES = 4_096;
type Answered = BodyAnswerOf<"POST /push/answer">;

const OVER = fail("permission_not_found", "this request was already answered, or has expired", {
  hint: "The inbox of the page shows what is open.",
});

async function answer({ deps }: RouteParts, raw: Uint8Array): Promise<Result<Answered>> {
  const { engine, settings, world, token } = deps;
  const json = readJson(raw);
  const body = json.ok ? await checkBody("POST /push/answer", json.value) : json;
  if (!body.ok) return body;
  const { db } = engine.store;
  const sealing = sealingKey(await pushKey(db, engine.commit));
  const button = readButton(sealing, body.value.token, world.clock.now());
  if (button === undefined) return OVER;
  const { requestId: id, decision, to } = button;
  const now = world.clock.now();
  const reader = await readerAt(to, { db, settings, tokens: tokensOf(settings, token), now });
  const mayAllow = reader?.device !== undefined || settings.push.ntfy?.allow === true;
  if (reader === undefined || (decision === "allow" && !mayAllow))
    return fail("unauthorized", "the device with this button may no longer answer");
  const answered = await engine.commit((unit) => {
    const given = { id, decision, scope: "once", by: reader.by } as const;
    return answerPermission(unit, given, { covers: reader.mayAnswer, everySession: reader.everySession });
  });
  if (answered.ok) return ok({ ok: true, decision });
  return answered.code === "permission_not_found" ? OVER : answered;
}

export function createDoor(parts: RouteParts): (...request: Parameters<Door>) => Promise<Response> {
  return async (c: Context<Env>) => {
    if (c.req.method !== "POST") {
      c.header("allow", "POST");
      return nothingHere(c, 405, "an answer must be a POST request");
    }
    const answered = await parts.unproven.read(c, BODY_MAX_BYTES, (raw) => answer(parts, raw));
    return answered.ok ? c.json(answered.value) : refuse(c, answered);
  };
}
