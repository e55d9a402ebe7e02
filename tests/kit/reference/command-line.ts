// docs/reference/COMMAND-LINE.md: every command with its arguments and options.

import type { Command } from "commander";
import { buildProgram } from "../../../src/cli/run.ts";
import { anchor, code, page, table } from "./markdown.ts";

interface Known {
  readonly path: string;
  readonly command: Command;
}

function below(command: Command, path: string): Known[] {
  return command.commands.flatMap((inner) => {
    const own = { path: `${path} ${inner.name()}`, command: inner };
    return [...(inner.commands.length === 0 ? [own] : []), ...below(inner, own.path)];
  });
}

/** The program as it is built for every call, without anything to run on. */
function program(): Command {
  const parts = { machine: { version: "" }, stdout: { write: () => true } };
  return buildProgram(
    parts as never,
    () => {},
    () => {},
  );
}

export function commands(): Known[] {
  return below(program(), "parley");
}

function optionRows(command: Command): string[][] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description, defaultValue, argChoices }) => {
      const choices = argChoices === undefined ? "" : ` One of ${argChoices.map(code).join(", ")}.`;
      const fallback = defaultValue === undefined ? "" : ` Default ${code(String(defaultValue))}.`;
      return [code(flags), `${description}${choices}${fallback}`];
    });
}

function section({ path, command }: Known): string {
  const usage = [
    path,
    ...command.registeredArguments.map((argument) => {
      const shown = `${argument.name()}${argument.variadic ? "…" : ""}`;
      return argument.required ? `<${shown}>` : `[${shown}]`;
    }),
  ].join(" ");
  const args = command.registeredArguments
    .filter(({ description }) => description !== "")
    .map((one) => [
      code(one.name()),
      `${one.description}${one.defaultValue === undefined ? "" : ` Default ${code(String(one.defaultValue))}.`}`,
    ]);
  const group = command.parent?.description() ?? "";
  const about = path.split(" ").length > 2 ? `${group}: ${command.description()}` : command.description();
  return page(
    `### ${path}`,
    code(usage),
    `${about}.`,
    table(["", ""], [...args, ...optionRows(command)]),
  ).trimEnd();
}

export function commandLinePage(): string {
  const all = commands();
  return page(
    "# Command line",
    "Generated from the definitions of the commands; `npx vitest run tests/reference.test.ts --update` writes it anew.",
    "In a checkout `npx parley …`; without a command the gateway starts. Exit codes: 0 done, 1 failed, 2 wrong usage,\n" +
      "3 no gateway reachable, or lost in the middle.",
    table(
      ["command", "what it does"],
      all.map(({ path, command }) => [`[\`${path}\`](#${anchor(path)})`, command.description()]),
    ),
    "## Options of every command",
    table(["", ""], optionRows(program())),
    "## Commands",
    ...all.map(section),
  );
}
