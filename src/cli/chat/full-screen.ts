// The drawn screen of a chat: messages above, one line of activity, and an input of several lines. Only a
// chat in a terminal loads it, with the library that draws.
// FS1: everything that is drawn was escaped before (safe-text.ts). The library gets no other control
//      characters than those of our own styles, and no picture that is not Base64.

import {
  Container,
  Editor,
  getCapabilities,
  Image,
  isKeyRelease,
  Markdown,
  type MarkdownTheme,
  matchesKey,
  ProcessTerminal,
  type SelectListTheme,
  setCapabilityOverrides,
  Text,
  TuiMainScreen,
  truncateToWidth,
} from "@earendil-works/pi-tui";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import type { Timer } from "../../world.ts";
import type { Cli } from "../cli.ts";
import { below } from "../message-lines.ts";
import { type CommandHint, completionsOf } from "./completion.ts";
import { Picker } from "./picker.ts";
import { type Choice, type Screen, type Typed, TypedQueue } from "./screen.ts";
import { TypedHistory } from "./typed-history.ts";
import type { Op, Picture } from "./view.ts";

/** Maximum number of messages and lines on the screen. Half of them are dropped at once. */
const SHOWN_MAX = 4_000;
const TICK_MS = 1_000;
/** Time to wait for the last keys, so that none reaches the shell. */
const DRAIN_MAX_MS = 200;
const PASTE_BEGIN = "\x1b[200~";
const PASTE_END = "\x1b[201~";
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const PICTURE_COLUMNS_MAX = 60;
const PICTURE_ROWS_MAX = 24;

interface FullScreenOptions {
  readonly commands: readonly CommandHint[];
  sessions(part: string): Promise<readonly Choice[]>;
  /** Returns the Base64 of a picture, or undefined if it cannot be read. */
  picture(picture: Picture): Promise<string | undefined>;
}

export class FullScreen implements Screen {
  readonly draws = true;
  readonly #cli: Cli;
  readonly #options: FullScreenOptions;
  readonly #terminal = new ProcessTerminal();
  readonly #tui = new TuiMainScreen(this.#terminal);
  readonly #messages = new Container();
  readonly #below = new Container();
  readonly #editor: Editor;
  readonly #queue = new TypedQueue();
  readonly #history: TypedHistory;
  readonly #listTheme: SelectListTheme;
  readonly #markdownTheme: MarkdownTheme;
  #open: { readonly shown: Markdown; text: string } | undefined;
  #begunAt: number | undefined;
  /** Whether the input so far was typed before the screen was drawn. */
  #isEarly = true;
  #interrupt: () => void = () => {};
  #leaveAsked = false;
  #status: (nowMs: number) => string = () => "";
  #timer: Timer | undefined;
  #cancelChoice: () => void = () => {};
  #closing: Promise<void> | undefined;

  constructor(cli: Cli, options: FullScreenOptions) {
    this.#cli = cli;
    this.#options = options;
    this.#history = new TypedHistory(cli.parts.home);
    // A link whose address is not shown could lead anywhere.
    setCapabilityOverrides({ hyperlinks: false });
    const dim = (text: string) => cli.style("dim", text);
    const cyan = (text: string) => cli.style("cyan", text);
    this.#listTheme = {
      selectedPrefix: cyan,
      selectedText: cyan,
      description: dim,
      scrollInfo: dim,
      noMatch: dim,
    };
    this.#markdownTheme = markdownTheme(cli);
    this.#editor = new Editor(this.#tui, { borderColor: dim, selectList: this.#listTheme });
    this.#editor.setAutocompleteProvider(
      completionsOf(options.commands, cli.parts.folder, (part) => options.sessions(part)),
    );
    this.#editor.onChange = (text) => {
      this.#begunAt = text === "" ? undefined : (this.#begunAt ?? this.#typingAt());
    };
    this.#editor.onSubmit = (text) => this.#submit(text);
    try {
      for (const text of this.#history.read()) this.#editor.addToHistory(text);
    } catch (error) {
      this.#tell(`the history is not available: ${safeLine((error as Error).message)}`);
    }
    const { render } = { render: (width: number) => [truncateToWidth(this.#status(this.#now()), width)] };
    for (const part of [this.#messages, { render, invalidate() {} }, this.#below]) this.#tui.addChild(part);
    this.#focus(this.#editor);
    this.#tui.addInputListener((data) => this.#onInput(data));
    this.#tui.start();
    this.#tick();
  }

  show(ops: readonly Op[]): void {
    for (const op of ops) {
      if (op.op === "grow") this.#grow(op);
      if (op.op === "line") {
        if (op.markdown !== undefined) this.#addAnswer(op.markdown);
        else this.#messages.addChild(new Text(op.text, 0, 0));
        if (op.picture !== undefined && getCapabilities().images !== null) void this.#draw(op.picture);
      }
      if (op.op === "end") this.#open = undefined;
    }
    const { children } = this.#messages;
    if (children.length > SHOWN_MAX) children.splice(0, SHOWN_MAX / 2);
    this.#tui.requestRender();
  }

  typed(): AsyncIterable<Typed> {
    return this.#queue.typed();
  }

  onInterrupt(fire: () => void): () => void {
    this.#interrupt = fire;
    return () => {
      this.#interrupt = () => {};
    };
  }

  mayLeave(): boolean {
    if (this.#leaveAsked) return true;
    this.#leaveAsked = true;
    this.#tell("press Ctrl-C again to leave");
    return false;
  }

  status(text: (nowMs: number) => string): void {
    this.#status = text;
    this.#tui.requestRender();
  }

  choose(choices: readonly Choice[]): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#cancelChoice = () => resolve(undefined);
    const picker = new Picker(choices, this.#listTheme, resolve);
    this.#focus(picker);
    return promise.finally(() => {
      if (this.#closing === undefined) this.#focus(this.#editor);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#restore();
    return this.#closing;
  }

  async #restore(): Promise<void> {
    this.#timer?.cancel();
    this.#cancelChoice();
    this.#queue.clear();
    this.#queue.end();
    this.#below.clear();
    this.#status = () => "";
    this.#tui.renderNow();
    await this.#terminal.drainInput(DRAIN_MAX_MS);
    this.#tui.stop();
  }

  #now(): number {
    return this.#cli.parts.world.clock.now();
  }

  /** Returns the time of the current key. An early one was meant for nothing that the screen shows. */
  #typingAt(): number {
    return this.#isEarly ? 0 : this.#now();
  }

  #tick(): void {
    this.#tui.requestRender();
    this.#timer = this.#cli.parts.world.clock.after(TICK_MS, () => this.#tick());
  }

  #focus(part: Editor | Picker): void {
    this.#below.clear();
    this.#below.addChild(part);
    this.#tui.setFocus(part);
    this.#tui.requestRender();
  }

  #tell(text: string): void {
    this.show([{ op: "line", text: this.#cli.style("dim", `· ${text}`) }]);
  }

  #grow({ text, markdown }: Extract<Op, { op: "grow" }>): void {
    if (markdown !== undefined) this.#open = { shown: this.#addAnswer(""), text: "" };
    if (this.#open === undefined) return;
    this.#open.text += markdown ?? text;
    this.#open.shown.setText(this.#open.text);
  }

  /** Adds a text of the agent. */
  #addAnswer(markdown: string): Markdown {
    const shown = new Markdown(markdown, 2, 0, this.#markdownTheme, undefined, { renderLatex: false });
    this.#messages.addChild(new Text(this.#cli.style("green", "agent:"), 0, 0));
    this.#messages.addChild(shown);
    return shown;
  }

  /** Draws a picture below its note, when it was read. */
  async #draw(picture: Picture): Promise<void> {
    const place = new Container();
    this.#messages.addChild(place);
    const data = await this.#options.picture(picture);
    if (data === undefined || !BASE64.test(data)) return;
    const theme = { fallbackColor: (text: string) => this.#cli.style("dim", text) };
    const size = { maxWidthCells: PICTURE_COLUMNS_MAX, maxHeightCells: PICTURE_ROWS_MAX };
    place.addChild(new Image(data, safeLine(picture.mimeType), theme, size));
    this.#tui.requestRender();
  }

  #submit(text: string): void {
    const begunAt = this.#begunAt ?? this.#typingAt();
    this.#begunAt = undefined;
    if (text.trim() === "") return;
    this.#messages.addChild(new Text(`${this.#cli.style("cyan", ">")} ${below(text)}`, 0, 0));
    this.#editor.addToHistory(text);
    try {
      this.#history.add(text);
    } catch (error) {
      this.#tell(`the text was not added to the history: ${safeLine((error as Error).message)}`);
    }
    this.#queue.push({ text, begunAt });
    this.#tui.requestRender();
  }

  /** Handles the keys of the chat. All others are for the input. */
  #onInput(data: string): { consume?: boolean; data?: string } | undefined {
    if (isKeyRelease(data)) return undefined;
    // Keys that were typed before the screen was drawn arrive together, with a line feed for each Enter.
    if (this.#isEarly) {
      this.#cli.parts.world.clock.after(0, () => {
        this.#isEarly = false;
      });
      if (data === "\n") return { data: "\r" };
    }
    if (data.startsWith(PASTE_BEGIN) && data.endsWith(PASTE_END)) {
      const pasted = data.slice(PASTE_BEGIN.length, -PASTE_END.length).replaceAll(/\r\n?/g, "\n");
      return { data: `${PASTE_BEGIN}${safeText(pasted)}${PASTE_END}` };
    }
    if (!this.#editor.focused) return undefined;
    const empty = this.#editor.getText() === "";
    if (matchesKey(data, "ctrl+c")) {
      if (empty) this.#interrupt();
      else this.#editor.setText("");
      return { consume: true };
    }
    this.#leaveAsked = false;
    const command = matchesKey(data, "ctrl+k") ? "/open" : matchesKey(data, "ctrl+d") && empty ? "/quit" : "";
    if (command === "") return undefined;
    this.#queue.push({ text: command, begunAt: this.#now() });
    return { consume: true };
  }
}

function markdownTheme({ style }: Cli): MarkdownTheme {
  const dim = (text: string) => style("dim", text);
  return {
    heading: (text) => style("bold", text),
    link: (text) => style("blue", text),
    linkUrl: dim,
    code: (text) => style("yellow", text),
    codeBlock: (text) => style("yellow", text),
    codeBlockBorder: dim,
    quote: (text) => style("italic", text),
    quoteBorder: dim,
    hr: dim,
    listBullet: (text) => text,
    bold: (text) => style("bold", text),
    italic: (text) => style("italic", text),
    strikethrough: (text) => style("strikethrough", text),
    underline: (text) => style("underline", text),
  };
}
