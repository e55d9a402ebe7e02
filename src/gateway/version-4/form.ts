// Calls a method in another form: translates the params, and the payload of the answer. Clients of version 4
// use such forms (forms.ts).

import type { MethodName, PayloadOf } from "../../contract/methods.ts";
import { type Fields, fieldsOf, isObject } from "../../core/json.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";

/** Facts of this gateway that a translation needs. */
export interface FormFacts {
  readonly settings: Settings;
  /** Id of this process, which cursors of the log contain. */
  readonly processId: string;
  /** Number of the newest line of the log. */
  readonly lastLogLine: number;
}

export interface FormDeps extends FormFacts {
  /** Calls another method without params. Returns undefined if it fails. */
  read<M extends MethodName>(method: M): Promise<PayloadOf<M> | undefined>;
}

export interface Form<M extends MethodName = MethodName> {
  /** Parley's method for the request. */
  readonly method: M;
  /** Translates the params. Default: they stay as they are. */
  params?(given: Fields, facts: FormFacts): Result<Fields>;
  /** Translates the payload of the answer. `given`: the params before their translation. */
  payload?(payload: PayloadOf<M>, given: Fields, deps: FormDeps): unknown;
}

/** Lets the compiler check the payload of the form's method. */
export const form = <M extends MethodName>(one: Form<M>): Form<M> => one;

/** Translates the request, makes it with `ask`, and translates a successful answer. */
export async function callInForm<A extends { readonly result: Result<unknown> }>(
  form: Form,
  given: unknown,
  facts: FormFacts,
  ask: (method: MethodName, params: unknown) => Promise<A | { readonly result: Result<unknown> }>,
): Promise<A | { readonly result: Result<unknown> }> {
  if (!isObject(given ?? {})) return ask(form.method, given);
  const fields = fieldsOf(given);
  const params = form.params?.(fields, facts) ?? ok(fields);
  if (!params.ok) return { result: params };
  const answer = await ask(form.method, params.value);
  if (!answer.result.ok || form.payload === undefined) return answer;
  const deps: FormDeps = {
    ...facts,
    async read<M extends MethodName>(method: M) {
      const { result } = await ask(method, {});
      return result.ok ? (result.value as PayloadOf<M>) : undefined;
    },
  };
  return {
    ...answer,
    result: ok(await form.payload(answer.result.value as PayloadOf<MethodName>, fields, deps)),
  };
}
