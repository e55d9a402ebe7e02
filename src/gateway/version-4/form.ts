// Calls a method in another form: translates the params, and the payload of the answer. Clients of version 4
// use such forms (forms.ts).

import type { MethodName, PayloadOf } from "../../contract/methods.ts";
import { type Fields, fieldsOf, isObject } from "../../core/json.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";

/** Facts of this gateway that a translation needs. */
export interface FormDeps {
  readonly settings: Settings;
  /** Id of this process, which cursors of the log contain. */
  readonly processId: string;
  /** Number of the newest line of the log. */
  readonly lastLogLine: number;
}

export interface Form<M extends MethodName = MethodName> {
  /** Parley's method for the request. */
  readonly method: M;
  /** Translates the params. Default: they stay as they are. */
  params?(given: Fields, deps: FormDeps): Result<Fields>;
  /** Translates the payload of the answer. `given`: the params before their translation. */
  payload?(payload: PayloadOf<M>, given: Fields, deps: FormDeps): unknown;
}

/** Translates the request, makes it with `call`, and translates a successful answer. */
export async function callInForm<A extends { readonly result: Result<unknown> }>(
  form: Form,
  given: unknown,
  deps: FormDeps,
  call: (params: unknown) => Promise<A | { readonly result: Result<unknown> }>,
): Promise<A | { readonly result: Result<unknown> }> {
  if (!isObject(given ?? {})) return call(given);
  const fields = fieldsOf(given);
  const read = form.params?.(fields, deps) ?? ok(fields);
  if (!read.ok) return { result: read };
  const answer = await call(read.value);
  if (!answer.result.ok || form.payload === undefined) return answer;
  return { ...answer, result: ok(form.payload(answer.result.value as PayloadOf<MethodName>, fields, deps)) };
}
