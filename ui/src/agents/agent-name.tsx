// An agent in the words of other views: its mark and its name.

import { Name } from "../parts/name.tsx";
import { agentName } from "./known.ts";
import { AgentMark } from "./mark.tsx";

/** `title`: words for the pointer. Default: the agent's id. */
export function Agent({ id, title = id }: { id: string; title?: string }) {
  return (
    <>
      <AgentMark id={id} /> <Name text={agentName(id)} title={title} />
    </>
  );
}
