// Reads the type declarations of the protocol from the source, with the comment of each field. The TypeScript
// compiler finds them, and the page shows them as TypeScript.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Node, SourceFile } from "typescript/unstable/ast";
import { isInterfaceDeclaration, isTypeAliasDeclaration } from "typescript/unstable/ast/is";
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { API } from "typescript/unstable/sync";

const SRC = fileURLToPath(new URL("../../../src/", import.meta.url));
const ROOT = "/tree";
const CONFIG = `${ROOT}/tsconfig.json`;

interface FieldFact {
  readonly name: string;
  /** The field's type, as written in the source. */
  readonly type: string;
  readonly doc: string;
}

export interface Declaration {
  readonly name: string;
  readonly path: string;
  readonly doc: string;
  /** The declaration without `export` and `readonly`. */
  readonly text: string;
  /** The fields of an interface, or of the object types in another kind of declaration. */
  readonly fields: readonly FieldFact[];
}

function sources(): Map<string, string> {
  const paths = ["features", "core", "contract"].flatMap((folder) =>
    readdirSync(SRC + folder, { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  );
  return new Map(
    paths.filter((path) => path.endsWith(".ts")).map((path) => [path, readFileSync(SRC + path, "utf8")]),
  );
}

/** Joins the lines of a comment. */
function words(comment: string): string {
  const [last = ""] = comment.match(/\/\*\*[\s\S]*?\*\/\s*$/) ?? [];
  return last
    .replaceAll(/^\/\*\*|\*\/\s*$/g, "")
    .replaceAll(/\n\s*\*/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Removes `readonly`: every type of the protocol is read-only. */
function plain(text: string): string {
  return text
    .replaceAll(/\breadonly /g, "")
    .replaceAll(/\bReadonly<(Record<[^<>]+(?:<[^<>]*>)?[^<>]*>)>/g, "$1")
    .replace(/^export /, "");
}

class Reader {
  readonly #text: string;
  readonly #source: SourceFile;

  constructor(text: string, source: SourceFile) {
    this.#text = text;
    this.#source = source;
  }

  doc(node: Node): string {
    return words(this.#text.slice(node.pos, node.getStart(this.#source)));
  }

  text(node: Node): string {
    return plain(this.#text.slice(node.getStart(this.#source), node.end));
  }

  /** Returns the named fields with their types, in this node and in the nodes inside it. */
  fields(node: Node): FieldFact[] {
    const found: FieldFact[] = [];
    const { name, type } = node as { name?: Node; type?: Node };
    const isField = name !== undefined && type !== undefined && !isTypeAliasDeclaration(node);
    if (isField) found.push({ name: this.text(name), type: this.text(type), doc: this.doc(node) });
    node.forEachChild((child: Node) => {
      found.push(...this.fields(child));
      return undefined;
    });
    return found;
  }
}

/**
 * Returns every named type of these files, by name. If two files declare the same name, the file closer to
 * the protocol wins.
 */
export function readDeclarations(): Map<string, Declaration> {
  const files = sources();
  const virtual: Record<string, string> = {
    [CONFIG]: JSON.stringify({ compilerOptions: { noLib: true, noResolve: true }, include: ["**/*"] }),
  };
  for (const [path, text] of files) virtual[`${ROOT}/${path}`] = text;
  const api = new API({ cwd: ROOT, fs: createVirtualFileSystem(virtual) });
  try {
    const project = api.updateSnapshot({ openProjects: [CONFIG] }).getProjects()[0];
    if (project === undefined) throw new Error("the compiler gave no project");
    const all = new Map<string, Declaration>();
    for (const [path, text] of files) {
      const source = project.program.getSourceFile(`${ROOT}/${path}`);
      if (source === undefined) throw new Error(`the compiler did not read ${path}`);
      const reader = new Reader(text, source);
      for (const node of source.statements) {
        if (!isInterfaceDeclaration(node) && !isTypeAliasDeclaration(node)) continue;
        const name = node.name.text;
        all.set(name, {
          ...{ name, path, doc: reader.doc(node), text: reader.text(node), fields: reader.fields(node) },
        });
      }
    }
    return all;
  } finally {
    api.close();
  }
}

/** Returns the types that this text names, and those that their declarations name. */
export function namedIn(text: string, all: ReadonlyMap<string, Declaration>): Set<string> {
  const found = new Set<string>();
  const look = (words: string): void => {
    const names = words.replaceAll(/\/\*[\s\S]*?\*\//g, "").matchAll(/\b[A-Z]\w+/g);
    for (const [name] of names) {
      const declaration = all.get(name);
      if (declaration === undefined || found.has(name)) continue;
      found.add(name);
      look(declaration.text);
    }
  };
  look(text);
  return found;
}
