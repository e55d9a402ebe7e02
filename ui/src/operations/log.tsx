// The log tab: the newest lines, updated live.
// LG1: if the reader is at the end, the view stays at the end when lines arrive. If the reader has scrolled
//      up, the view does not move.

import { Button } from "../parts/button.tsx";
import "./log.css";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { cut } from "../../../src/core/text/cut.ts";
import { safeLine, safeText } from "../../../src/core/text/safe-text.ts";
import { settled } from "../clock.ts";
import { ask, whenConnected } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { clockTime, counted } from "../parts/format.ts";
import { useKept } from "../parts/kept.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { type Option, Select } from "../parts/select.tsx";
import { hrefOf } from "../route.ts";
import type { Tone } from "../styles/tones.ts";
import { added, detailsOf, type Kept, type LogLine, NOTHING, reasonOf, titleOf } from "./log-lines.ts";
import { usePolling } from "./polling.ts";

const EVERY_MS = 2_000;
const FIRST_LINES = 300;
const PAGE_LINES = 500;
const TYPING_MS = 300;
/** Maximum length of the reason on a line. The details contain the whole reason. */
const REASON_MAX_CHARS = 300;

type Level = LogLine["level"];
const LEVELS: readonly Option<Level>[] = [
  ["debug", "all"],
  ["info", "info and above"],
  ["warn", "warn and above"],
  "error",
];
const TONES: Readonly<Record<Level, Tone>> = { debug: "quiet", info: "quiet", warn: "warn", error: "bad" };

interface Wanted {
  readonly level: Level;
  readonly search: string;
}

const ALL: Wanted = { level: "debug", search: "" };

/** Returns the lines that match the filter, and reads newer ones all the time, unless paused. */
function useLog(wanted: Wanted, following: boolean) {
  const [kept, setKept] = useState<Kept>();
  const [problem, setProblem] = useState<unknown>();
  const place = useRef<{ of: string; cursor: string | undefined }>({ of: "", cursor: undefined });
  const of = JSON.stringify(wanted);
  const search = wanted.search === "" ? {} : { search: wanted.search };
  const read = async (anew: boolean): Promise<void> => {
    if (anew) place.current = { of, cursor: undefined };
    const { cursor } = place.current;
    const from = cursor === undefined ? { limit: FIRST_LINES } : { cursor, limit: PAGE_LINES };
    try {
      const page = await ask("logs.tail", { level: wanted.level, ...search, ...from });
      // Ignore the answer if the filter has changed since the request was sent.
      if (place.current.of !== of || place.current.cursor !== cursor) return;
      place.current = { of, cursor: page.cursor };
      setKept((before) => added(anew ? NOTHING : (before ?? NOTHING), page.lines, page.dropped));
      setProblem(undefined);
      if (page.more) await read(false);
    } catch (error) {
      if (place.current.of === of) setProblem(error);
    }
  };
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => whenConnected(() => void latest.current(true)), [of]);
  usePolling(EVERY_MS, () => latest.current(place.current.cursor === undefined), following);
  return { kept, problem, again: () => void read(true) };
}

export function LogTab() {
  const [wanted, setWanted] = useKept("log", ALL);
  const [following, setFollowing] = useState(true);
  const [typed] = useState(() =>
    settled<string>(TYPING_MS, (search) => setWanted((before) => ({ ...before, search }))),
  );
  const { kept, problem, again } = useLog(wanted, following);
  return (
    <div class="stack log">
      <h2 class="visually-hidden">Log</h2>
      <search class="bar">
        <label class="row">
          <span>Level</span>
          <Select value={wanted.level} options={LEVELS} onPick={(level) => setWanted({ ...wanted, level })} />
        </label>
        <input
          class="log-search"
          type="search"
          maxLength={200}
          placeholder="Search"
          defaultValue={wanted.search}
          aria-label="Search the log"
          onInput={({ currentTarget }) => typed(currentTarget.value)}
        />
        <Button text={following ? "Pause" : "Follow"} data-act="" onClick={() => setFollowing(!following)} />
        <span class="soft" role="status">
          {kept === undefined ? "" : counted(kept.lines.length, "line")}
          {kept !== undefined && kept.dropped > 0 && `, ${counted(kept.dropped, "line")} missed`}
          {following ? "" : ", paused"}
        </span>
      </search>
      <Awaited value={kept} problem={problem} again={again} />
      {kept !== undefined && (
        <Lines lines={kept.lines} all={wanted.level === "debug" && wanted.search === ""} />
      )}
    </div>
  );
}

/** Shows the lines. `all`: true if no filter is set. */
function Lines({ lines, all }: { lines: readonly LogLine[]; all: boolean }) {
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [lines]);
  if (lines.length === 0) return <p class="empty card">{all ? "No log lines yet" : "No matching lines"}</p>;
  return (
    <section
      class="log-lines card"
      ref={box}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
      aria-label="Lines"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
      tabIndex={0}
    >
      <ol data-list>
        {lines.map((line) => (
          <LogRow key={line.seq} line={line} />
        ))}
      </ol>
    </section>
  );
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

function LogRow({ line }: { line: LogLine }) {
  const [open, setOpen] = useKept(`line ${line.seq}`, false);
  const opened = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (open) opened.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const details = detailsOf(line);
  const reason = reasonOf(line);
  const sessionKey = text(line.sessionKey);
  const chainId = text(line.chainId);
  const what = (
    <>
      <time class="soft">{line.time === 0 ? "—" : clockTime(line.time)}</time>
      <span class="log-level">{line.level}</span>
      <bdi class="cut log-msg">{safeLine(titleOf(line))}</bdi>
      {reason !== undefined && <bdi class="clamp log-reason">{safeLine(cut(reason, REASON_MAX_CHARS))}</bdi>}
    </>
  );
  return (
    <li data-item data-place={line.seq} class={`log-line tone-${TONES[line.level]}`}>
      {details === undefined && line.cut !== true ? (
        <span class="plain log-what">{what}</span>
      ) : (
        <Button text={what} class="plain log-what" aria-expanded={open} onClick={() => setOpen(!open)} />
      )}
      <span class="row log-about">
        {text(line.part) && <Name as="span" class="chip" text={String(line.part)} />}
        {sessionKey && <SessionLink sessionKey={sessionKey} />}
        {chainId && <a href={hrefOf({ view: "flow", chainId })}>chain</a>}
      </span>
      {open && (
        <pre class="sunken log-details" ref={opened}>
          <bdi>
            {line.cut === true && `${safeText(line.msg)}\n(the rest of this line is on standard error only)`}
            {details !== undefined && safeText(details)}
          </bdi>
        </pre>
      )}
    </li>
  );
}
