// Shows a tool call as what it is: a terminal, a file, a change of a file, links, a table, or a message. This
// file is loaded when the first call is opened.
// VW1: the shape of the data decides, not the name of the tool, because programs bring tools of their own.
//      Data of any shape is shown without an error, as facts if it is nothing else. JSON is shown on demand.

import Anser from "anser";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Fields, fieldsOf, isObject } from "../../../../src/core/json.ts";
import { head } from "../../../../src/core/text/cut.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { Button } from "../../parts/button.tsx";
import { counted, duration } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { joinWords } from "../../parts/words.ts";
import type { ToolResult } from "../items.ts";
import { Picture } from "../text/picture.tsx";
import { Code, Prose, scrolls } from "../text/text.tsx";
import { type CallStep, isId, nameWords, parsed, resultText, valueWords } from "./calls.ts";
import "./views.css";

const TERMINAL_MAX_CHARS = 60_000;
const ROWS_MAX = 200;
const COLUMNS_MAX = 8;
const CELL_MAX_CHARS = 200;
/** Maximum length of a fact on one line. */
const LINE_MAX_CHARS = 160;
/** Maximum depth of facts in facts. Deeper values are words. */
const DEPTH_MAX = 3;
/** The languages of files whose endings are not their names. */
const LANGUAGES: Readonly<Record<string, string>> = { mjs: "js", cjs: "js", mts: "ts", cts: "ts", h: "c" };

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const rows = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);

function Terminal({ command, output, fields }: { command: string; output: string; fields: Fields }) {
  const { exitCode, signal, durationMs } = fields;
  const chunks = Anser.ansiToJson(head(output, TERMINAL_MAX_CHARS), {
    use_classes: true,
    remove_empty: true,
  });
  const facts = joinWords([
    typeof exitCode === "number" ? `exit code ${exitCode}` : "",
    typeof signal === "string" ? `ended by ${signal}` : "",
    typeof durationMs === "number" ? duration(durationMs) : "",
  ]);
  return (
    <div class="stack terminal">
      <pre class="sunken" {...scrolls("Terminal")}>
        <strong>{`$ ${safeText(command)}\n`}</strong>
        {chunks.map(({ content, fg, decorations }, at) => (
          <span key={at} class={[fg, ...decorations.map((one) => `ansi-${one}`)].join(" ")}>
            {safeText(content)}
          </span>
        ))}
      </pre>
      {facts !== "" && <Name as="p" class="soft" text={facts} />}
    </div>
  );
}

function Figure(props: { caption: string; class?: string; children: ComponentChildren }) {
  const { caption, class: name = "soft", children } = props;
  return (
    <figure class="stack">
      <figcaption class={name}>
        <Name text={caption} />
      </figcaption>
      {children}
    </figure>
  );
}

function File({ path, content, note }: { path: string; content: string; note: string | undefined }) {
  const ending = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const ticks = (content.match(/`{3,}/g) ?? []).map(({ length }) => length);
  const fence = "`".repeat(Math.max(2, ...ticks) + 1);
  return (
    <Figure caption={path} class="soft mono">
      <Prose text={`${fence}${LANGUAGES[ending] ?? ending}\n${content}\n${fence}`} />
      {note !== undefined && <Name as="p" class="soft" text={note} />}
    </Figure>
  );
}

const BEFORE = ["oldText", "old_string", "old_str", "old"];
const AFTER = ["newText", "new_string", "new_str", "new"];

/** Returns the first of these fields that is a text. */
const findText = (fields: Fields, names: readonly string[]): string | undefined =>
  names.map((name) => text(fields[name])).find((one) => one !== undefined);

/** Returns the texts before and after each change that a call describes. */
function editsIn(args: Fields): (readonly [before: string, after: string])[] {
  return [args, ...rows(args.edits)].flatMap((fields) => {
    const [before, after] = [findText(fields, BEFORE), findText(fields, AFTER)];
    return before === undefined || after === undefined ? [] : [[before, after] as const];
  });
}

const linesOf = (part: string): string[] => (part === "" ? [] : part.split("\n"));

function Change({ path, edits }: { path: string; edits: ReturnType<typeof editsIn> }) {
  return (
    <Figure caption={path} class="soft mono">
      {edits.map(([before, after], at) => (
        <pre key={at} class="sunken change" {...scrolls(`Change ${at + 1}`)}>
          {linesOf(before).map((line, row) => (
            <del key={`- ${row}`}>{`- ${safeText(line)}\n`}</del>
          ))}
          {linesOf(after).map((line, row) => (
            <ins key={`+ ${row}`}>{`+ ${safeText(line)}\n`}</ins>
          ))}
        </pre>
      ))}
    </Figure>
  );
}

/** Shows web pages with their addresses and texts. An address opens only if it is one of the web. */
function Links({ pages }: { pages: readonly Fields[] }) {
  return (
    <ul class="stack">
      {pages.slice(0, ROWS_MAX).map((page, at) => {
        const url = text(page.url) ?? "";
        const title = text(page.title) ?? url;
        const words = findText(page, ["snippet", "text"]);
        return (
          <li key={at} class="stack">
            {/^https?:\/\//.test(url) ? (
              <a href={url} target="_blank" rel="noopener noreferrer">
                <Name text={title} title={url} />
              </a>
            ) : (
              <Name text={title} />
            )}
            <Name as="span" class="soft mono" text={url} />
            {words !== undefined && <Prose text={words} />}
          </li>
        );
      })}
    </ul>
  );
}

/** Shows a list of objects, or of plain values. */
function Table({ list }: { list: readonly unknown[] }) {
  const shown = list.slice(0, ROWS_MAX).map((one) => (isObject(one) ? one : { value: one }));
  const names = [...new Set(shown.flatMap(Object.keys))]
    .filter((name) => !shown.every((row) => isId((row as Fields)[name])))
    .slice(0, COLUMNS_MAX);
  const others = list.length - shown.length;
  return (
    <>
      <div class="scroll-x" {...scrolls("Rows")}>
        <table class="tool-table">
          {names.length > 1 && (
            <thead>
              <tr>
                {names.map((name) => (
                  <Name as="th" key={name} text={nameWords(name)} />
                ))}
              </tr>
            </thead>
          )}
          <tbody>
            {shown.map((row, at) => (
              <tr key={at}>
                {names.map((name) => (
                  <Name
                    as="td"
                    key={name}
                    text={head(name in row ? valueWords((row as Fields)[name]) : "", CELL_MAX_CHARS)}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {others > 0 && <p class="soft">and {counted(others, "more row")}</p>}
    </>
  );
}

/** Shows a value of any shape: a text as text, a list as a table, an object as facts. */
function Value({ name, value, depth }: { name: string; value: unknown; depth: number }) {
  if (Array.isArray(value) && value.length > 0) return <Table list={value} />;
  if (isObject(value) && depth < DEPTH_MAX) return <Facts fields={value} depth={depth + 1} />;
  const words = valueWords(value) || "none";
  const isLong = words.length > LINE_MAX_CHARS || words.includes("\n");
  return isLong ? <Code name={name} text={words} /> : <Name text={words} />;
}

function Facts({ fields, depth = 0 }: { fields: Fields; depth?: number }) {
  const entries = Object.entries(fields).slice(0, ROWS_MAX);
  if (entries.length === 0) return null;
  return (
    <dl class="facts">
      {entries.map(([name, value]) => (
        <>
          <Name as="dt" key={name} text={nameWords(name)} />
          <dd>
            <Value name={name} value={value} depth={depth} />
          </dd>
        </>
      ))}
    </dl>
  );
}

/** Shows the result of a call. `raw`: its text. */
function Answer({ raw }: { raw: string }) {
  const value = parsed(raw);
  if (value === undefined)
    return raw.trim() === "" ? <p class="soft">No result text</p> : <Code name="Result" text={raw} />;
  const fields = Object.entries(isObject(value) ? value : { results: value }).filter(
    ([name, field]) => name !== "status" || field !== "ok",
  );
  const [[name, field] = [], ...more] = fields;
  if (name === undefined) return <p class="soft">Done</p>;
  if (more.length > 0 || !Array.isArray(field)) return <Facts fields={Object.fromEntries(fields)} />;
  if (field.length > 0) return <Table list={field} />;
  return <Name as="p" class="soft" text={`No ${nameWords(name)}`} />;
}

/** `answer`: the fields of the result. `raw`: its text. Undefined: facts show the call. */
function drawCall(args: Fields, answer: Fields, raw: string): ComponentChildren | undefined {
  const { command, message, task } = args;
  const path = findText(args, ["path", "file_path"]) ?? text(answer.path);
  const edits = editsIn(args);
  const isData = Object.keys(answer).length > 0;
  if (typeof command === "string")
    return <Terminal command={command} output={text(answer.output) ?? (isData ? "" : raw)} fields={answer} />;
  if (path !== undefined && edits.length > 0) return <Change path={path} edits={edits} />;
  const content = text(args.content) ?? text(answer.text);
  if (path !== undefined && content !== undefined && answer.url === undefined)
    return <File path={path} content={content} note={text(answer.note)} />;
  const sent = text(message) ?? text(task);
  if (sent !== undefined) {
    const reply = findText(answer, ["reply", "note"]);
    const { message: _, task: __, ...others } = args;
    return (
      <>
        <Facts fields={others} />
        <Figure caption={message === undefined ? "Task" : "Message"}>
          <Prose text={sent} />
        </Figure>
        {reply !== undefined ? (
          <Figure caption={answer.reply === undefined ? "Note" : "Reply"}>
            <Prose text={reply} />
          </Figure>
        ) : (
          isData && <Answer raw={raw} />
        )}
      </>
    );
  }
  if (typeof answer.url === "string") return <Links pages={[answer]} />;
  const list = Object.values(answer).find((value) => Array.isArray(value) && value.length > 0);
  const isPages = rows(list).every(({ url }) => typeof url === "string");
  return list !== undefined && isPages ? <Links pages={rows(list)} /> : undefined;
}

/** Formats JSON for people. Strings have real line breaks. A value that is nested too deep is not shown. */
function formatJson(value: unknown): string {
  try {
    const json = JSON.stringify(value, undefined, 2) ?? "";
    return json.replaceAll(/\\(.)/g, (pair, char) => (char === "n" ? "\n" : pair));
  } catch {
    return "(nested too deep)";
  }
}

function Json({ call, result }: CallStep) {
  const raw = result === undefined ? "" : resultText(result);
  const value = parsed(raw);
  return (
    <>
      {call !== undefined && Object.keys(call.arguments).length > 0 && (
        <Code name="Arguments" text={formatJson(call.arguments)} />
      )}
      {result !== undefined && (
        <Code
          name={result.isError ? "Error" : "Result"}
          text={value === undefined ? raw : formatJson(value)}
        />
      )}
    </>
  );
}

/** Shows why a call failed. Its code and its hint are for the model, so they are in the JSON only. */
export function Failure({ result }: { result: ToolResult }) {
  const raw = resultText(result);
  const value = parsed(raw);
  const words =
    value === undefined ? raw || "The tool gave no reason." : findText(fieldsOf(value), ["error", "message"]);
  return (
    <div class="stack tool-error">
      {words !== undefined && <Code name="Error" text={words} />}
      {words === undefined && <Value name="Error" value={value} depth={0} />}
    </div>
  );
}

/** Shows a call and its result, and both as JSON on demand. */
export function CallView(step: CallStep) {
  const { call, result } = step;
  const [json, setJson] = useState(false);
  const args = call?.arguments ?? {};
  const raw = result === undefined || result.isError ? "" : resultText(result);
  return (
    <>
      {json && <Json {...step} />}
      {!json &&
        (drawCall(args, fieldsOf(parsed(raw)), raw) ?? [
          <Facts key="arguments" fields={args} />,
          result?.isError === false && <Answer key="result" raw={raw} />,
        ])}
      {!json && result?.isError === true && <Failure result={result} />}
      {result?.content.map(
        (block, index) =>
          block.type === "image" && <Picture key={index} messageId={result.id} index={index} block={block} />,
      )}
      <p class="number">
        <Button text="JSON" class="quiet small" aria-pressed={json} onClick={() => setJson(!json)} />
      </p>
    </>
  );
}
