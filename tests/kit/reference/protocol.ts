// docs/reference/PROTOCOL.md: every method with its params and answer, every event, every type on the wire.

import { IDEMPOTENCY } from "../../../src/contract/idempotency.ts";
import type { MethodSpec } from "../../../src/contract/methods/parts.ts";
import { CONNECT, METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { EVENTS } from "../../../src/contract/protocol.ts";
import { TOOLS } from "../../../src/contract/tools.ts";
import { schemaAnswers, typeText } from "./answers.ts";
import { EVERY_METHOD } from "./codes.ts";
import { type Declaration, namedIn, readDeclarations } from "./declarations.ts";
import { FIELD_WORDS } from "./field-words.ts";
import { code, GENERATED, link, linkedCodes, page, prose, table, wrapped } from "./markdown.ts";
import { type Field, fieldsOf, type Schema, typeWords } from "./schema.ts";

const IDEMPOTENCY_WORDS = {
  none: "",
  optional: "With an `idempotencyKey` it is done once.",
  required: "Needs an `idempotencyKey`, and is done once for it.",
  run: "Needs an `idempotencyKey`: it is the id of the run, which is made once.",
} as const;
/** The interface whose members are events. */
const EVENT_TABLE = "EventPayloads";

type Spec = Omit<MethodSpec, "params"> & { readonly params: Schema };

const specs = (): [MethodName, Spec][] => Object.entries(METHODS) as [MethodName, Spec][];

/** Returns every param of every method, so that a test finds those without a description. */
export function methodParams(): { method: string; field: Field }[] {
  const ofMethods = specs().flatMap(([method, { params }]) =>
    fieldsOf(params).map((field) => ({ method, field })),
  );
  return [...ofMethods, ...fieldsOf(CONNECT as Schema).map((field) => ({ method: "connect", field }))];
}

/** The answers and events by name, and all types that they name. */
export class Wire {
  readonly #schemas = schemaAnswers();
  readonly #all = new Map([...readDeclarations(), ...this.#schemas.types]);
  readonly answers = this.#schemas.answers;
  readonly events = new Map<string, { type: string; doc: string }>();

  constructor() {
    for (const { name: quoted, type, doc } of this.#all.get(EVENT_TABLE)?.fields ?? []) {
      const event = quoted.replaceAll('"', "");
      // The fields inside a payload come later.
      if ((EVENTS as readonly string[]).includes(event) && !this.events.has(event))
        this.events.set(event, { type, doc });
    }
  }

  get(name: string): Declaration | undefined {
    return this.#all.get(name);
  }

  /** Returns the named types on the wire, alphabetically. */
  types(): Declaration[] {
    const roots = [...this.answers.values(), ...this.events.values()].map(({ type }) => type);
    const tools = Object.values(TOOLS).map(({ result }) => typeText(result as Schema));
    const names = namedIn([...roots, ...tools, "HelloOk WireError"].join("\n"), this.#all);
    return [...names].sort().flatMap((name) => this.#all.get(name) ?? []);
  }

  #described(): Declaration[] {
    return [...this.types(), ...[this.get(EVENT_TABLE) ?? []].flat(), ...this.#schemas.untitled];
  }

  /** Returns the fields without a description, at the field or by name. */
  unspoken(): { type: string; field: string }[] {
    const own = (type: string, fields: Declaration["fields"]) =>
      fields
        .filter(({ name, doc }) => doc === "" && FIELD_WORDS[name] === undefined)
        .filter(({ name }) => !name.startsWith('"') && !this.answers.has(name) && !this.events.has(name))
        .map(({ name }) => ({ type, field: name }));
    const named = this.#described();
    return named.flatMap(({ name, fields }) => own(name, fields));
  }

  /** Returns the field names that are described by name alone. */
  namesUsed(): Set<string> {
    const named = this.#described();
    return new Set(
      named.flatMap(({ fields }) => fields.filter(({ doc }) => doc === "").map(({ name }) => name)),
    );
  }
}

const ts = (text: string): string => `\`\`\`ts\n${text}\n\`\`\``;

function paramsTable(params: Schema): string {
  return table(
    ["param", "type", "meaning"],
    fieldsOf(params).map(({ path, schema, required }) => [
      required ? `**${code(path)}**` : code(path),
      typeWords(schema),
      schema.description ?? "",
    ]),
  );
}

function methodSection(name: MethodName, spec: Spec, wire: Wire): string {
  const answer = wire.answers.get(name);
  const isNamed = /^\w+$/.test(answer?.type ?? "");
  const shown = isNamed ? `Answer: ${link(answer?.type ?? "")}.` : `Answer:\n\n${ts(answer?.type ?? "")}`;
  const params = paramsTable(spec.params);
  const events = (spec.events ?? []).map((event) => link(`event ${event}`, code(event))).join(", ");
  return page(
    `### ${name}`,
    prose(`${spec.summary} ${IDEMPOTENCY_WORDS[IDEMPOTENCY[name]]}`.trim()),
    prose(`*Scope:* ${code(spec.scope)}.${events === "" ? "" : ` *Events:* ${events}.`}`),
    params === "" ? "No params." : params,
    shown,
    answer?.doc ? `(${answer.doc})` : "",
    spec.errors === undefined ? "" : wrapped("*Codes besides:*", linkedCodes(spec.errors), "."),
    spec.ignored === undefined ? "" : wrapped("*Accepted and ignored:*", spec.ignored.map(code), "."),
  ).trimEnd();
}

function eventSection(name: string, wire: Wire): string {
  const { type = "", doc = "" } = wire.events.get(name) ?? {};
  return page(
    `### event ${name}`,
    doc,
    /^\w+$/.test(type) ? `Payload: ${link(type)}.` : `Payload: ${code(type)}.`,
  ).trimEnd();
}

function typeSection({ name, doc, text }: Declaration): string {
  return page(`### ${name}`, doc, ts(text)).trimEnd();
}

export function protocolPage(): string {
  const wire = new Wire();
  const used = wire.namesUsed();
  const words = Object.entries(FIELD_WORDS)
    .filter(([name]) => used.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return page(
    "# Protocol reference",
    GENERATED,
    "The ideas, a first conversation and the limits are in [PROTOCOL.md](../PROTOCOL.md). **Bold** params are required; an\n" +
      "unknown one is an error. Strings of names have at most 512 characters. Times are ms since 1970 unless a name says otherwise.",
    wrapped("Any method may answer", linkedCodes(EVERY_METHOD), ".") +
      `
A failure is a ${link("WireError")} in the response frame.`,
    "[Connecting](#connecting) · [Methods](#methods) · [Events](#events) · [Types](#types) · [Fields](#fields) · [Codes](ERRORS.md)",
    "## Connecting",
    "The first request of a connection is `connect`, within ten seconds of the event `connect.challenge {nonce, ts}`.\n" +
      "Fields that are not known are ignored, so that newer clients can connect.",
    paramsTable(CONNECT as Schema),
    `Answer: ${link("HelloOk")}.`,
    "## Methods",
    table(
      ["method", "scope", "what it does"],
      specs().map(([name, { scope, summary }]) => [link(name), code(scope), summary]),
    ),
    ...specs().map(([name, spec]) => methodSection(name, spec, wire)),
    "## Events",
    "A session's events go to those whose token covers it.",
    table(
      ["event", "when, and to whom"],
      EVENTS.map((name) => [link(`event ${name}`, code(name)), wire.events.get(name)?.doc ?? ""]),
    ),
    ...EVENTS.map((name) => eventSection(name, wire)),
    "## Types",
    ...wire.types().map(typeSection),
    "## Fields",
    "What a field means that says nothing of itself above. A field with `?` is absent where there is nothing to say.",
    table(
      ["field", "meaning"],
      words.map(([name, meaning]) => [code(name), meaning]),
    ),
  );
}
