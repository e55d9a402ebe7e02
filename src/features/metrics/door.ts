// Serves metrics to Prometheus. They cover the work of all sessions, so the token must cover all sessions
// (I9).

import { needScope } from "../../gateway/dispatch.ts";
import type { RouteParts } from "../../gateway/http/http.ts";
import { type Door, nothingHere, refuse } from "../../gateway/http/request.ts";
import { needEverySession } from "../../gateway/methods/operations.ts";
import { serviceIn } from "./service.ts";
import { EXPOSITION_TYPE } from "./text.ts";

export function createDoor({ deps }: RouteParts): Door {
  return async (c) => {
    if (!["GET", "HEAD"].includes(c.req.method)) {
      c.header("allow", "GET");
      return nothingHere(c, 405, "metrics are read with GET");
    }
    const caller = c.get("caller");
    const allowed = needScope(caller, "GET /metrics", "operator.read");
    if (!allowed.ok) return refuse(c, allowed);
    const covers = needEverySession(caller, "GET /metrics");
    if (!covers.ok) return refuse(c, covers);
    return c.body(await serviceIn(deps).text(), 200, { "content-type": EXPOSITION_TYPE });
  };
}
