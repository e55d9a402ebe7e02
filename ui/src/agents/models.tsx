// Shows each configured model with its prices, and tests it with one short call.

import { useState } from "preact/hooks";
import type { ModelTest } from "../../../src/contract/methods/agents.ts";
import type { ModelRow } from "../../../src/contract/methods/operations.ts";
import { ask, coversAll, has, may, wordsOf } from "../gateway.ts";
import { ResourceList } from "../operations/resource-list.tsx";
import { duration, exactMoney, tokens } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { joinWords } from "../parts/words.ts";
import { plainHint } from "../setup/failed-run.ts";

const Connect = lazy(async () => (await import("../setup/setup.tsx")).Connect);
const Fix = lazy(async () => (await import("../setup/fix.tsx")).Fix);

/** The answer of a test, the reason why it was refused, or undefined while it runs. */
type Test = ModelTest | { readonly refusal: string } | undefined;

function priceOf({ cost }: ModelRow): string {
  const { input, output, cacheRead } = cost;
  if (input === 0 && output === 0) return "price not set";
  const cached = cacheRead > 0 ? `, ${exactMoney(cacheRead)} cached` : "";
  return `${exactMoney(input)} in${cached}, ${exactMoney(output)} out per million tokens`;
}

function Answer({ test, model }: { test: Test; model: string }) {
  if (test === undefined) return <State state="running" text="Waiting for an answer…" />;
  if ("refusal" in test) return <Name as="p" class="small row-error tone-bad" text={test.refusal} />;
  const { ok, durationMs, totalTokens, cost, text, error, hint } = test;
  const spent = totalTokens === 0 ? [] : [`${tokens(totalTokens)} tokens`, exactMoney(cost)];
  const facts = joinWords([durationMs === 0 ? "built in" : duration(durationMs), ...spent]);
  return (
    <>
      <p class={ok ? "" : "small row-error tone-bad"}>
        {ok && <State state="ok" text={text ? <Name text={`answered “${text}”`} /> : "works"} />}
        {!ok && <Name text={error ?? "no answer"} />} <span class="soft">{facts}</span>
      </p>
      {!ok && hint !== undefined && <Name as="p" text={plainHint(hint)} />}
      {!ok && hint?.includes(".apiKey") && (
        <Fix code="model_unauthorized" agentId="" sessionKey="" model={model} />
      )}
    </>
  );
}

export function Models() {
  const read = useReading("models", () => ask("models.list"));
  const [tests, setTests] = useState<Readonly<Record<string, Test>>>({});
  const run = async (model: string): Promise<void> => {
    const note = (test: Test) => setTests((before) => ({ ...before, [model]: test }));
    note(undefined);
    await ask("models.test", { model }).then(note, (error: unknown) => note({ refusal: wordsOf(error) }));
  };
  const mayTest = may("operator.admin") && coversAll() && has("models.test");
  return (
    <section aria-label="Models">
      <ResourceList
        title="Models"
        words={
          mayTest
            ? "A test asks the model for one word. It costs a few tokens."
            : "To test a model, sign in with an admin token that covers every session."
        }
        head={<Connect what="model" onClose={read.again} />}
        list={read}
        rows={read.value?.models}
        row={(row) => {
          const model = `${row.provider}/${row.id}`;
          const isRunning = model in tests && tests[model] === undefined;
          return {
            key: model,
            name: model,
            beside: row.name !== row.id && <Name as="span" class="soft" text={row.name} />,
            facts: [
              joinWords([
                `${tokens(row.contextWindow)} context`,
                `${tokens(row.maxOutputTokens)} output`,
                row.images ? "images" : "",
                row.reasoning ? "thinking" : "",
                priceOf(row),
              ]),
            ],
            body: <div role="status">{model in tests && <Answer test={tests[model]} model={model} />}</div>,
            actions: mayTest
              ? [{ label: "Test", about: model, disabled: isRunning, run: () => run(model) }]
              : [],
          };
        }}
      />
    </section>
  );
}
