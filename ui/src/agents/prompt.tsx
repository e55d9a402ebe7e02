// Shows what the model of an agent is told, part by part, with sizes.

import type { AgentPrompt } from "../../../src/contract/methods/agents.ts";
import { ask } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { Fold } from "../parts/fold.tsx";
import { counted, size, tokens } from "../parts/format.ts";
import { Lines, Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";

const sizeOf = (part: { readonly bytes: number; readonly tokens: number }): string =>
  `${size(part.bytes)}, about ${tokens(part.tokens)} tokens`;

function Part({ part }: { part: AgentPrompt["parts"][number] }) {
  const { title, text, file } = part;
  return (
    <li>
      <details>
        <summary>
          <Name text={title} /> <span class="soft">{sizeOf(part)}</span>
        </summary>
        {file !== undefined && <Name as="p" class="soft" text={file} />}
        <Lines as="pre" class="sunken out-text" text={text} />
      </details>
    </li>
  );
}

function Parts({ agentId }: { agentId: string }) {
  const read = useReading(`prompt ${agentId}`, () => ask("agents.prompt", { agentId }));
  if (read.value === undefined) return <Awaited {...read} />;
  const { parts, tools, skipped } = read.value;
  return (
    <>
      <ul class="stack">
        {parts.map((part, at) => (
          <Part key={`${at} ${part.title}`} part={part} />
        ))}
      </ul>
      <p class="soft">
        {counted(tools.count, "tool")} beside it: {sizeOf(tools)}
      </p>
      {skipped.map(({ path, why }) => (
        <Name as="p" key={path} class="tone-warn" text={`${path} is not used: ${why}`} />
      ))}
    </>
  );
}

/** Shows the prompt of the agent's main session while it is unfolded. */
export function Prompt({ agentId }: { agentId: string }) {
  return <Fold line="what the model is told" inside={() => <Parts agentId={agentId} />} />;
}
