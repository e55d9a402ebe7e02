// A simulated sandbox: commands take time and are counted, and no program is started.

import { ok } from "../../../src/core/shapes/errors.ts";
import { Output } from "../../../src/sandbox/output.ts";
import type { Program, Sandbox } from "../../../src/sandbox/sandbox.ts";
import type { Story } from "../story.ts";

const OUTPUT_BYTES = 1_000;

/** Returns the unique word in a shell command or in the input of a file operation. */
function wordOf(program: Program): string {
  if (program.kind === "shell") return program.command;
  const { args } = JSON.parse(program.input) as { args: { edits?: { newText: string }[] } };
  return args.edits?.[0]?.newText ?? "";
}

export function createSandbox(story: Story, alive: () => boolean): Sandbox {
  return {
    kind: "bubblewrap",
    async run(program, { signal }) {
      const word = wordOf(program);
      const luck = story.luck("sandbox");
      story.commands.set(word, (story.commands.get(word) ?? 0) + 1);
      story.trace.add(`command ${word}`);
      const output = new Output(OUTPUT_BYTES);
      output.add(Buffer.from(program.kind === "shell" ? "done" : JSON.stringify(ok({ status: "ok" }))));
      const end = { exitCode: 0, signal: null, output, errors: "", full: false } as const;
      const aborted = new Promise<"aborted">((resolve) => {
        if (signal.aborted) resolve("aborted");
        else signal.addEventListener("abort", () => resolve("aborted"), { once: true });
      });
      const done = story.time.pass(luck.below(60)).then(() => "ended" as const);
      const ending = await Promise.race([done, aborted]);
      if (!alive()) await new Promise(() => {});
      return ok({ ...end, ending });
    },
  };
}
