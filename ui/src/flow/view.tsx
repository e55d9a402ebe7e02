// Owns the view of who is talking to whom.

import { route } from "../route.ts";

export function FlowView() {
  const at = route.value;
  return <p class="empty">{at.view === "flow" && at.chainId !== undefined ? at.chainId : "Nothing yet."}</p>;
}
