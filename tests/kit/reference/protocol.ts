// docs/reference/PROTOCOL.md: every method with its params and answer, every event, every type of the
// protocol.

import { typeWords } from "../../../src/config/schema/keys.ts";
import type { Schema } from "../../../src/config/schema/setting.ts";
import { BODIES } from "../../../src/contract/bodies.ts";
import { EVENTS } from "../../../src/contract/events.ts";
import { CONNECT } from "../../../src/contract/frames.ts";
import { idempotencyOf } from "../../../src/contract/idempotency.ts";
import type { MethodSpec } from "../../../src/contract/methods/parts.ts";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { schemaPayloads } from "./answers.ts";
import { EVERY_METHOD } from "./codes.ts";
import { type Declaration, namedIn, readDeclarations } from "./declarations.ts";
import { FIELD_WORDS } from "./field-words.ts";
import { code, GENERATED, link, linkedCodes, page, prose, table, wrapped } from "./markdown.ts";
import { type Field, fieldsOf } from "./schema.ts";

const IDEMPOTENCY_WORDS = {
  none: "",
  optional: "A request with an `idempotencyKey` takes effect once.",
  required: "Needs an `idempotencyKey`, and takes effect once for each key.",
  run: "Needs an `idempotencyKey`: it becomes the id of the run, which starts once.",
} as const;

type Spec = Omit<MethodSpec, "params"> & { readonly params: Schema };

const specs = (): [MethodName, Spec][] => Object.entries(METHODS) as [MethodName, Spec][];

/** Returns every param of every method and HTTP body, so that a test finds those without a description. */
export function givenFields(): { method: string; field: Field }[] {
  const bodies = Object.entries(BODIES).map(([path, { body }]): [string, Schema] => [path, body as Schema]);
  const methods = specs().map(([method, { params }]): [string, Schema] => [method, params]);
  return [["connect", CONNECT as Schema] as const, ...bodies, ...methods].flatMap(([method, schema]) =>
    fieldsOf(schema).map((field) => ({ method, field })),
  );
}

/** The answers, events and frames of the protocol by name, and all types that they use. */
export class Wire {
  readonly #schemas = schemaPayloads();
  readonly #all = new Map([...readDeclarations(), ...this.#schemas.types]);
  readonly payloads = this.#schemas.payloads;

  /** Returns the named types of the protocol, alphabetically. */
  types(): Declaration[] {
    const roots = [...this.payloads.values()].map(({ type }) => type);
    const names = namedIn(roots.join("\n"), this.#all);
    return [...names].sort().flatMap((name) => this.#all.get(name) ?? []);
  }

  #described(): Declaration[] {
    return [...this.types(), ...this.#schemas.untitled];
  }

  /** Returns the fields that are described neither at their declaration nor in field-words.ts. */
  unspoken(): { type: string; field: string }[] {
    return this.#described().flatMap(({ name: type, fields }) =>
      fields
        .filter(({ name, doc }) => doc === "" && FIELD_WORDS[name] === undefined)
        .map(({ name }) => ({ type, field: name })),
    );
  }

  /** Returns the names of the fields that only field-words.ts describes. */
  namesUsed(): Set<string> {
    const named = this.#described();
    return new Set(
      named.flatMap(({ fields }) => fields.filter(({ doc }) => doc === "").map(({ name }) => name)),
    );
  }
}

const ts = (text: string): string => `\`\`\`ts\n${text}\n\`\`\``;

function paramsTable(params: Schema, word = "param"): string {
  return table(
    [word, "type", "meaning"],
    fieldsOf(params).map(({ path, schema, required }) => [
      required ? `**${code(path)}**` : code(path),
      typeWords(schema),
      schema.description ?? "",
    ]),
  );
}

/** Shows a payload as a link to its type, or in full if its type has no name. */
function payloadText(label: string, name: string, wire: Wire): string {
  const { type, doc } = wire.payloads.get(name) ?? { type: "", doc: "" };
  const shown = /^\w+$/.test(type) ? `${label}: ${link(type)}.` : `${label}:\n\n${ts(type)}`;
  return doc === "" ? shown : `${shown}\n\n(${doc})`;
}

function methodSection(name: MethodName, spec: Spec, wire: Wire): string {
  const params = paramsTable(spec.params);
  const events = (spec.events ?? []).map((event) => link(`event ${event}`, code(event))).join(", ");
  return page(
    `### ${name}`,
    prose(
      [
        spec.summary,
        spec.everySession === true ? "Requires a token that covers every session." : "",
        IDEMPOTENCY_WORDS[idempotencyOf(name)],
      ]
        .filter((sentence) => sentence !== "")
        .join(" "),
    ),
    prose(
      [
        `*Scope:* ${code(spec.scope)}${spec.outlivesToken ? ", but not with an access token" : ""}.`,
        events === "" ? "" : `*Events:* ${events}.`,
      ].join(" "),
    ),
    params === "" ? "No params." : params,
    payloadText("Answer", name, wire),
    spec.errors === undefined ? "" : wrapped("*Further codes:*", linkedCodes(spec.errors), "."),
    spec.ignored === undefined ? "" : wrapped("*Accepted and ignored:*", spec.ignored.map(code), "."),
  ).trimEnd();
}

function eventSection(name: string, summary: string, wire: Wire): string {
  return page(`### event ${name}`, prose(summary), payloadText("Payload", `event ${name}`, wire)).trimEnd();
}

function bodySection(name: string, summary: string, body: Schema, wire: Wire): string {
  return page(
    `### ${name}`,
    prose(summary),
    paramsTable(body, "field"),
    payloadText("Answer", name, wire),
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
    "[Connecting](#connecting) · [Methods](#methods) · [Events](#events) · " +
      "[HTTP bodies](#http-bodies) · [Types](#types) · [Fields](#fields) · [Codes](ERRORS.md)",
    "## Connecting",
    "The first request of a connection is `connect`, within ten seconds of the event `connect.challenge {nonce, ts}`.\n" +
      "Fields that are not known are ignored, so that newer clients can connect.",
    paramsTable(CONNECT as Schema),
    `Answer: ${link("HelloOk")}.`,
    "## Methods",
    table(
      ["method", "scope", "effect"],
      specs().map(([name, { scope, summary }]) => [link(name), code(scope), summary]),
    ),
    ...specs().map(([name, spec]) => methodSection(name, spec, wire)),
    "## Events",
    "The events of a session are sent to the connections whose token covers the session.",
    table(
      ["event", "time and receivers"],
      Object.entries(EVENTS).map(([name, { summary }]) => [link(`event ${name}`, code(name)), summary]),
    ),
    ...Object.entries(EVENTS).map(([name, { summary }]) => eventSection(name, summary, wire)),
    "## HTTP bodies",
    `A refused request gets \`{ok: false, error}\`, with a ${link("WireError")}.`,
    ...Object.entries(BODIES).map(([name, { summary, body }]) =>
      bodySection(name, summary, body as Schema, wire),
    ),
    "## Types",
    ...wire.types().map(typeSection),
    "## Fields",
    "Fields without a description above. A field with `?` may be absent.",
    table(
      ["field", "meaning"],
      words.map(([name, meaning]) => [code(name), meaning]),
    ),
  );
}
