// Translates events for a session.

import { textOf } from "../../core/json.ts";
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
