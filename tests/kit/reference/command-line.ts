// docs/reference/COMMAND-LINE.md: every command with its arguments and options.

import type { Command } from "commander";
import { buildProgram, featureCommands } from "../../../src/cli/run.ts";
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

const OF_FEATURES = await featureCommands();

/** Builds the command line program without running it. */
export function program(): Command {
  const parts = { machine: { version: "" }, stdout: { write: () => true } };
  return buildProgram(
    parts as never,
    () => {},
    () => {},
    OF_FEATURES,
  );
}

export function commands(): Known[] {
  return below(program(), "parley");
}

const fallback = (value: unknown): string => (value === undefined ? "" : `. Default ${code(String(value))}`);

function optionRows(command: Command): string[][] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description, defaultValue, argChoices }) => {
      const choices = argChoices === undefined ? "" : `. One of ${argChoices.map(code).join(", ")}`;
      return [code(flags), `${description}${choices}${fallback(defaultValue)}`];
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
    .map((one) => [code(one.name()), `${one.description}${fallback(one.defaultValue)}`]);
  return page(
    `### ${path}`,
    code(usage),
    `${command.description()}.`,
    table(["", ""], [...args, ...optionRows(command)]),
  ).trimEnd();
}

export function commandLinePage(): string {
  const all = commands();
  return page(
    "# Command line",
    "Generated from the definitions of the commands. Update it with `npx vitest run tests/reference.test.ts --update`.",
    "In a checkout, run `npx parley-gateway …`. Without a command, the gateway starts. Exit codes: 0 done, 1 failed,\n" +
      "2 wrong usage, 3 gateway unreachable or connection lost.",
    table(
      ["command", "purpose"],
      all.map(({ path, command }) => [`[\`${path}\`](#${anchor(path)})`, command.description()]),
    ),
    "## Options of every command",
    table(["", ""], optionRows(program())),
    "## Commands",
    ...all.map(section),
  );
}
