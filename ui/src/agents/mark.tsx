// The mark of an agent, which stands before its name. Screen readers skip it, because the name is beside it.

import { faceIn, markOf } from "./face.ts";
import { agents } from "./known.ts";

export function AgentMark({ id }: { id: string }) {
  return id === "" ? null : <span aria-hidden="true" {...markOf(faceIn(agents.value, id))} />;
}
