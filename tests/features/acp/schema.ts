// Checks the messages of a connection that speaks ACP against the JSON schema that the protocol publishes, and
// against JSON-RPC: each response has a request, and no object has fields that the protocol does not know.

import { createRequire } from "node:module";
import { fieldsOf, isObject, jsonOf } from "../../../src/core/json.ts";
import { misfits } from "../../kit/event-check.ts";

type Side = "agent" | "client";
type Json = Readonly<Record<string, unknown>>;

const ROOT_FIELDS = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);
const PROBLEM_MAX_CHARS = 600;

interface Forms {
  readonly $defs: Readonly<Record<string, Json>>;
  /** Name of the definition by receiver (`agent session/prompt`) and by its kind. */
  readonly names: ReadonlyMap<string, string>;
}

/** `unstable`: with the parts of the protocol that are still changing. */
function readForms(unstable: boolean): Forms {
  const file = `@agentclientprotocol/sdk/schema/v1/schema${unstable ? ".unstable" : ""}.json`;
  const { $defs } = createRequire(import.meta.url)(file) as Pick<Forms, "$defs">;
  const names = Object.entries($defs).flatMap(([name, form]) => {
    const kind = /(?:Request|Response|Notification)$/.exec(name)?.[0];
    const method = form["x-method"];
    return method === undefined || kind === undefined
      ? []
      : [[`${form["x-side"]} ${method} ${kind}`, name] as const];
  });
  return { $defs, names: new Map(names) };
}

/** Returns the fields that a definition knows, or undefined if it has no list of fields. */
function knownFields({ $defs }: Forms, form: Json): string[] {
  const ref = typeof form.$ref === "string" ? $defs[form.$ref.slice("#/$defs/".length)] : undefined;
  const parts = ["allOf", "anyOf", "oneOf"].flatMap((word) => (form[word] ?? []) as Json[]);
  const below = [...parts, ...(ref === undefined ? [] : [ref])];
  return [
    ...Object.keys(fieldsOf(form.properties)),
    ...below.flatMap((part) => knownFields({ $defs, names: new Map() }, part)),
  ];
}

export class AcpChecker {
  readonly #forms: Forms;
  /** Methods of the requests without an answer, by sender and id. */
  readonly #open = new Map<string, string>();
  readonly #problems: string[] = [];
  #count = 0;

  constructor({ unstable = false }: { readonly unstable?: boolean } = {}) {
    this.#forms = readForms(unstable);
  }

  /** The problems of all messages so far. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** The number of messages so far. */
  get count(): number {
    return this.#count;
  }

  /** Checks a line that this side wrote. */
  check(by: Side, line: string): void {
    this.#count += 1;
    const message = jsonOf(line);
    const problem = isObject(message) ? this.#problemOf(by, message) : "not a JSON-RPC message";
    if (problem !== undefined) this.#problems.push(`${by}: ${problem}: ${line}`.slice(0, PROBLEM_MAX_CHARS));
  }

  /** Remembers a request without a check, to test how the other side takes it. */
  expect(by: Side, { id, method }: { readonly id: unknown; readonly method: string }): void {
    this.#open.set(`${by} ${JSON.stringify(id)}`, method);
  }

  #problemOf(by: Side, message: Json): string | undefined {
    if (message.jsonrpc !== "2.0") return "no JSON-RPC 2.0";
    const extra = Object.keys(message).find((name) => !ROOT_FIELDS.has(name));
    if (extra !== undefined) return `unknown field ${extra}`;
    const other = by === "agent" ? "client" : "agent";
    if (typeof message.method === "string") {
      const kind = message.id === undefined ? "Notification" : "Request";
      if (kind === "Request") this.expect(by, { id: message.id, method: message.method });
      return this.#misfit(other, message.method, kind, message.params ?? {});
    }
    const key = `${other} ${JSON.stringify(message.id)}`;
    const method = this.#open.get(key);
    if (method === undefined) return "a response without a request";
    this.#open.delete(key);
    if ("result" in message === "error" in message) return "neither a result nor an error, or both";
    if ("error" in message) {
      const { code, message: text } = fieldsOf(message.error);
      const isRight = Number.isInteger(code) && typeof text === "string" && /^[^\n]+$/.test(text);
      return isRight ? undefined : "an error needs a code and a line of text";
    }
    return this.#misfit(by, method, "Response", message.result ?? {});
  }

  #misfit(receiver: Side, method: string, kind: string, value: unknown): string | undefined {
    if (method.startsWith("_")) return undefined;
    const { $defs, names } = this.#forms;
    const name = names.get(`${receiver} ${method} ${kind}`) ?? names.get(`protocol ${method} ${kind}`);
    if (name === undefined) return `the protocol has no ${kind} ${method} for ${receiver}s`;
    const form = this.#formOf(name);
    const errors = misfits(form, value);
    if (errors.length > 0) return `does not fit ${name} (${JSON.stringify(errors.at(-1))})`;
    const known = knownFields(this.#forms, $defs[name] ?? {});
    const extra = Object.keys(fieldsOf(value)).find((field) => !known.includes(field));
    return extra === undefined ? undefined : `${name} has no field ${extra}`;
  }

  readonly #built = new Map<string, object>();

  /** Returns the same object each time, because its check is compiled once. */
  #formOf(name: string): object {
    const form = this.#built.get(name) ?? { $defs: this.#forms.$defs, $ref: `#/$defs/${name}` };
    this.#built.set(name, form);
    return form;
  }
}
