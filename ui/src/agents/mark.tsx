// The mark of an agent, and the mark with the name behind it. Screen readers skip the mark.

import { Name } from "../parts/name.tsx";
import { faceIn, markOf } from "./face.ts";
import { agentName, agents } from "./known.ts";

export function AgentMark({ id }: { id: string }) {
  return id === "" ? null : <span aria-hidden="true" {...markOf(faceIn(agents.value, id))} />;
}

/** `title`: words for the pointer. Default: the agent's id. */
export function Agent({ id, title = id }: { id: string; title?: string }) {
  return (
    <>
      <AgentMark id={id} /> <Name text={agentName(id)} title={title} />
    </>
  );
}
