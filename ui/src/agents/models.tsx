// Shows each configured model with its prices, and tests it with one short call.

import { useState } from "preact/hooks";
import type { ModelTest } from "../../../src/contract/methods/agents.ts";
import type { ModelRow } from "../../../src/contract/methods/operations.ts";
import { ask, coversAll, has, may, wordsOf } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { duration, exactMoney, tokens } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";

const Connect = lazy(async () => (await import("../setup/setup.tsx")).Connect);

type Test =
  | { readonly kind: "running" }
  | { readonly kind: "answered"; readonly test: ModelTest }
  | { readonly kind: "refused"; readonly problem: string };

function priceOf({ cost }: ModelRow): string {
  const { input, output, cacheRead } = cost;
  if (input === 0 && output === 0) return "price not set";
  const cached = cacheRead > 0 ? `, ${exactMoney(cacheRead)} cached` : "";
  return `${exactMoney(input)} in${cached}, ${exactMoney(output)} out per million tokens`;
}

function factsOf(row: ModelRow): string {
  return [
    `${tokens(row.contextWindow)} context`,
    `${tokens(row.maxOutputTokens)} output`,
    row.images ? "images" : "",
    row.reasoning ? "thinking" : "",
    priceOf(row),
  ]
    .filter((one) => one !== "")
    .join(" · ");
}

/** Shows the outcome of a test, and makes screen readers announce it. */
function Outcome({ test }: { test: Test | undefined }) {
  return (
    <div class="model-outcome" role="status">
      {test?.kind === "running" && <State state="running" text="Waiting for an answer…" />}
      {test?.kind === "refused" && (
        <p class="row-error tone-bad">
          <Name text={test.problem} />
        </p>
      )}
      {test?.kind === "answered" && <Answer test={test.test} />}
    </div>
  );
}

function Answer({ test }: { test: ModelTest }) {
  const { ok, durationMs, totalTokens, cost, text, error, hint } = test;
  const spent = totalTokens === 0 ? [] : [`${tokens(totalTokens)} tokens`, exactMoney(cost)];
  const facts = [durationMs === 0 ? "built in" : duration(durationMs), ...spent].join(" · ");
  if (ok)
    return (
      <p>
        <State state="ok" text={text ? <Name text={`answered “${text}”`} /> : "works"} />{" "}
        <span class="soft">{facts}</span>
      </p>
    );
  return (
    <>
      <p class="row-error tone-bad">
        <Name text={error ?? "no answer"} /> <span class="soft">{facts}</span>
      </p>
      {hint !== undefined && (
        <p>
          <Name text={hint} />
        </p>
      )}
    </>
  );
}

function Row(props: { row: ModelRow; users: readonly string[]; mayTest: boolean }) {
  const { row, users, mayTest } = props;
  const [test, setTest] = useState<Test>();
  const model = `${row.provider}/${row.id}`;
  const run = (): void => {
    setTest({ kind: "running" });
    ask("models.test", { model }).then(
      (answer) => setTest({ kind: "answered", test: answer }),
      (error: unknown) => setTest({ kind: "refused", problem: wordsOf(error) }),
    );
  };
  return (
    <li class="out-row model-row">
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={model} />
          </strong>
          {row.name !== row.id && (
            <span class="soft">
              <Name text={row.name} />
            </span>
          )}
        </p>
        <p class="soft">{factsOf(row)}</p>
        <p class="soft">
          {users.length === 0 ? "No agent uses this model." : <Name text={`Used by ${users.join(", ")}`} />}
        </p>
        <Outcome test={test} />
      </div>
      <div class="row-actions">
        {mayTest && (
          <button
            type="button"
            aria-label={`Test ${model}`}
            aria-disabled={test?.kind === "running"}
            onClick={() => test?.kind !== "running" && run()}
          >
            Test
          </button>
        )}
      </div>
    </li>
  );
}

export function Models({ users }: { users: ReadonlyMap<string, readonly string[]> }) {
  const read = useReading("models", () => ask("models.list"));
  const mayTest = may("operator.admin") && coversAll() && has("models.test");
  return (
    <section class="models" aria-labelledby="models-title">
      <div class="bar">
        <h2 id="models-title">Models</h2>
        <Connect what="model" onClose={read.again} />
      </div>
      <p class="soft">
        {mayTest
          ? "A test asks the model for one word. It costs a few tokens."
          : "To test a model, sign in with an admin token that covers every session."}
      </p>
      <Awaited {...read} />
      {read.value !== undefined && (
        <ul class="out-rows card" aria-label="Models">
          {read.value.models.map((row) => {
            const model = `${row.provider}/${row.id}`;
            return <Row key={model} row={row} users={users.get(model) ?? []} mayTest={mayTest} />;
          })}
        </ul>
      )}
    </section>
  );
}
