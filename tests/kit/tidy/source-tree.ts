// Reads source files into the facts that tidy.test.ts checks: imports, exports, and references to
// names. The TypeScript compiler parses the files from a file system in memory, so a test can replace real
// files by examples.

import { dirname, posix } from "node:path";
import type { Node, SourceFile } from "typescript/unstable/ast";
import { SyntaxKind } from "typescript/unstable/ast";
import {
  isCallExpression,
  isExportDeclaration,
  isExportSpecifier,
  isFunctionLikeDeclaration,
  isIdentifier,
  isImportDeclaration,
  isImportSpecifier,
  isImportTypeNode,
  isInterfaceDeclaration,
  isLiteralTypeNode,
  isNamedExports,
  isNamedImports,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isPrivateIdentifier,
  isPropertyAccessExpression,
  isShorthandPropertyAssignment,
  isStringLiteral,
  isTypeAliasDeclaration,
  isVariableStatement,
} from "typescript/unstable/ast/is";
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { API } from "typescript/unstable/sync";

export interface ImportFact {
  readonly specifier: string;
  /** The imported file. Undefined for packages and built-in modules. */
  readonly target: string | undefined;
  /** Names imported from that module. */
  readonly names: readonly string[] | "all";
  /** True if only types are imported, so that nothing is loaded. */
  readonly isType: boolean;
  /** True for `import()`, which loads when it is called. */
  readonly isLate: boolean;
  readonly line: number;
}

export interface ExportFact {
  readonly name: string;
  readonly line: number;
  readonly isType: boolean;
  /** True if the same file uses the export elsewhere. */
  readonly usedHere: boolean;
}

/** A function or method with a name. */
export interface FunctionFact {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
  /** How often the file says its name, besides the declaration. */
  readonly uses: number;
  readonly isExported: boolean;
}

/** A name or chain of names in an expression: `Date.now`, `setTimeout`, `new Date()`. */
export interface ReferenceFact {
  readonly text: string;
  readonly line: number;
}

export interface SourceFact {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly ImportFact[];
  readonly exports: readonly ExportFact[];
  readonly functions: readonly FunctionFact[];
  readonly references: readonly ReferenceFact[];
}

const ROOT = "/tree";
const CONFIG = `${ROOT}/tsconfig.json`;

/** Reads all source files. `files`: text by path, relative to the root, with `/` between folders. */
export function readTree(files: ReadonlyMap<string, string>): SourceFact[] {
  const compilerOptions = {
    noLib: true,
    noResolve: true,
    allowJs: true,
    types: [],
    module: "nodenext",
    jsx: "preserve",
  };
  const virtual: Record<string, string> = {
    [CONFIG]: JSON.stringify({ compilerOptions, files: [...files.keys()] }),
  };
  for (const [path, text] of files) virtual[`${ROOT}/${path}`] = text;
  const api = new API({ cwd: ROOT, fs: createVirtualFileSystem(virtual) });
  try {
    const project = api.updateSnapshot({ openProjects: [CONFIG] }).getProjects()[0];
    if (project === undefined) throw new Error("the compiler gave no project");
    return [...files].map(([path, text]) => {
      const source = project.program.getSourceFile(`${ROOT}/${path}`);
      if (source === undefined) throw new Error(`the compiler did not read ${path}`);
      return factsOf(path, text, source, files);
    });
  } finally {
    api.close();
  }
}

class Reader {
  readonly imports: ImportFact[] = [];
  readonly references: ReferenceFact[] = [];
  readonly functions: Omit<FunctionFact, "uses" | "isExported">[] = [];
  readonly exported: { name: string; line: number; isType: boolean }[] = [];
  readonly spoken = new Map<string, number>();
  readonly #path: string;
  readonly #source: SourceFile;
  readonly #files: ReadonlyMap<string, string>;

  constructor(path: string, source: SourceFile, files: ReadonlyMap<string, string>) {
    this.#path = path;
    this.#source = source;
    this.#files = files;
  }

  lineOf(position: number): number {
    return this.#source.getLineAndCharacterOfPosition(position).line + 1;
  }

  visit(node: Node, parent: Node | undefined): void {
    const line = this.lineOf(node.getStart(this.#source));
    if (isIdentifier(node) || isPrivateIdentifier(node))
      this.spoken.set(node.text, (this.spoken.get(node.text) ?? 0) + 1);
    this.#noteModules(node, line);
    this.#noteExport(node, line);
    if (isFunctionLikeDeclaration(node)) {
      const named = (node as { name?: Node }).name ?? (parent as { name?: Node } | undefined)?.name;
      if (named !== undefined && (isIdentifier(named) || isPrivateIdentifier(named))) {
        this.functions.push({ name: named.text, line, lines: this.lineOf(node.end) - line + 1 });
      }
    }
    this.#noteReference(node, parent, line);
    node.forEachChild((child: Node) => {
      this.visit(child, node);
      return undefined;
    });
  }

  #addImport(
    specifier: string,
    names: readonly string[] | "all",
    line: number,
    { isType = false, isLate = false } = {},
  ): void {
    const relative = specifier.startsWith(".") ? posix.join(dirname(this.#path), specifier) : undefined;
    const target = relative !== undefined && this.#files.has(relative) ? relative : undefined;
    this.imports.push({ specifier, target, names, isType, isLate, line });
  }

  /** Records imports and re-exports of every kind, and paths of files that are started elsewhere. */
  #noteModules(node: Node, line: number): void {
    if (isImportDeclaration(node) && isStringLiteral(node.moduleSpecifier)) {
      const isType = node.importClause?.phaseModifier === SyntaxKind.TypeKeyword;
      this.#addImport(node.moduleSpecifier.text, namesOf(node.importClause), line, { isType });
    } else if (isExportDeclaration(node) && node.moduleSpecifier && isStringLiteral(node.moduleSpecifier)) {
      const names =
        node.exportClause && isNamedExports(node.exportClause) ? namesOf(node.exportClause) : "all";
      this.#addImport(node.moduleSpecifier.text, names, line, { isType: node.isTypeOnly });
    } else if (isImportTypeNode(node) && isLiteralTypeNode(node.argument)) {
      const { literal } = node.argument;
      if (isStringLiteral(literal)) this.#addImport(literal.text, "all", line, { isType: true });
    } else if (isCallExpression(node) || isNewExpression(node)) {
      const [first] = node.arguments ?? [];
      const loads = isNewExpression(node) || node.expression.kind === SyntaxKind.ImportKeyword;
      if (first === undefined || !(isStringLiteral(first) || isNoSubstitutionTemplateLiteral(first))) return;
      const isFile = /^\.{1,2}\/.*\.([jt]s|tsx)$/.test(first.text);
      if (loads && (isFile || !isNewExpression(node)))
        this.#addImport(first.text, "all", line, { isLate: !isNewExpression(node) });
    }
  }

  #noteExport(node: Node, line: number): void {
    if (isExportDeclaration(node)) {
      const { exportClause } = node;
      if (exportClause === undefined || !isNamedExports(exportClause)) return;
      for (const element of exportClause.elements) {
        if (isExportSpecifier(element)) {
          this.exported.push({ name: element.name.text, line, isType: false });
        }
      }
      return;
    }
    const { modifiers } = node as { modifiers?: readonly Node[] };
    if (!modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword)) return;
    if (modifiers.some(({ kind }) => kind === SyntaxKind.DefaultKeyword)) {
      this.exported.push({ name: "default", line, isType: false });
    } else if (isVariableStatement(node)) {
      for (const declaration of node.declarationList.declarations) {
        if (isIdentifier(declaration.name)) {
          this.exported.push({ name: declaration.name.text, line, isType: false });
        }
      }
    } else {
      const { name } = node as { name?: Node };
      const isType = isInterfaceDeclaration(node) || isTypeAliasDeclaration(node);
      if (name !== undefined && isIdentifier(name)) this.exported.push({ name: name.text, line, isType });
    }
  }

  #noteReference(node: Node, parent: Node | undefined, line: number): void {
    if (isNewExpression(node) && (node.arguments ?? []).length === 0) {
      this.references.push({ text: `new ${this.#chainOf(node.expression)}()`, line });
    } else if (isCallExpression(node)) {
      this.references.push({ text: `${this.#chainOf(node.expression)}(`, line });
    } else if (isPropertyAccessExpression(node)) {
      const chain = this.#chainOf(node);
      if (chain !== undefined) this.references.push({ text: chain, line });
    } else if (isIdentifier(node) && !isNameOnly(node, parent)) {
      this.references.push({ text: node.text, line });
    }
  }

  /** Returns a chain of names such as `a.b.c`, without a leading `globalThis`. */
  #chainOf(node: Node): string | undefined {
    if (isIdentifier(node)) return node.text;
    if (!isPropertyAccessExpression(node)) return undefined;
    const left = this.#chainOf(node.expression);
    return left === undefined || left === "globalThis" ? node.name.text : `${left}.${node.name.text}`;
  }
}

/** Returns true if the node only names a property or a declaration, and does not use it. */
function isNameOnly(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined) return true;
  if (isPropertyAccessExpression(parent)) return parent.expression !== node;
  if (isShorthandPropertyAssignment(parent)) return false;
  return (parent as { name?: Node }).name === node;
}

function namesOf(clause: Node | undefined): readonly string[] | "all" {
  const names: string[] = [];
  let all = false;
  clause?.forEachChild((child: Node) => {
    if (isImportSpecifier(child) || isExportSpecifier(child))
      names.push((child.propertyName ?? child.name).text);
    else if (isNamedImports(child)) names.push(...namesOf(child));
    else if (isIdentifier(child)) names.push("default");
    else if (child.kind === SyntaxKind.NamespaceImport) all = true;
    return undefined;
  });
  return all ? "all" : names;
}

function factsOf(
  path: string,
  text: string,
  source: SourceFile,
  files: ReadonlyMap<string, string>,
): SourceFact {
  const reader = new Reader(path, source, files);
  for (const statement of source.statements) reader.visit(statement, source);
  const exports = reader.exported.map((one) => ({
    ...one,
    usedHere: (reader.spoken.get(one.name) ?? 0) > 1,
  }));
  const functions = reader.functions.map((one) => ({
    ...one,
    uses: (reader.spoken.get(one.name) ?? 1) - 1,
    isExported: exports.some(({ name }) => name === one.name),
  }));
  const { imports, references } = reader;
  return { path, text, imports, exports, functions, references };
}
