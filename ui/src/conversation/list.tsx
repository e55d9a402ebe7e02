// Owns the scrolling list of a conversation.
// LI1: wherever messages are added, the visible message keeps its position, unless the reader follows the
//      newest message.
// LI2: the view stays at the end only if the reader has scrolled to the end.

import { Component, type ComponentChild, createRef } from "preact";
import { Entry } from "./entry.tsx";
import type { Item } from "./items.ts";
import type { SessionReader } from "./reader.ts";
import { WINDOW_MAX } from "./thread.ts";

/** Maximum distance from the end, in CSS pixels, at which the reader counts as being at the end. */
const END_PX = 48;
/** Distance from an end of the loaded messages, in CSS pixels, at which the next page is read. */
const NEAR_PX = 1_200;

interface ListProps {
  readonly items: readonly Item[];
  readonly reader: SessionReader;
  /** Changes when the list must scroll to the message, or without one to the end. */
  readonly jump: { readonly messageId?: string | undefined };
  readonly tail: ComponentChild;
  readonly head: ComponentChild;
}

/** The visible entries, by id, with their distance from the top of the window. */
type Positions = ReadonlyMap<string, number>;

export class MessageList extends Component<ListProps> {
  readonly #box = createRef<HTMLElement>();
  readonly #content = createRef<HTMLDivElement>();
  #follows = true;
  #top = 0;
  #observer: ResizeObserver | undefined;

  override componentDidMount(): void {
    this.#observer = new ResizeObserver(() => {
      if (this.#follows) this.#toEnd();
    });
    if (this.#content.current !== null) this.#observer.observe(this.#content.current);
    if (this.#box.current !== null) this.#observer.observe(this.#box.current);
    this.#settle();
    this.#look();
  }

  override componentWillUnmount(): void {
    this.#observer?.disconnect();
  }

  override getSnapshotBeforeUpdate(): Positions {
    return this.#visibleEntries();
  }

  override componentDidUpdate(before: ListProps, _: unknown, positions: Positions): void {
    if (before.jump !== this.props.jump) this.#settle();
    else if (this.#follows) this.#toEnd();
    else this.#keep(positions);
    this.#look();
  }

  #visibleEntries(): Positions {
    const positions = new Map<string, number>();
    const box = this.#box.current;
    if (box === null) return positions;
    const { top, bottom } = box.getBoundingClientRect();
    for (const entry of box.querySelectorAll<HTMLElement>("[data-id]")) {
      const rect = entry.getBoundingClientRect();
      if (rect.bottom > top && rect.top < bottom) positions.set(entry.dataset.id ?? "", rect.top);
      else if (positions.size > 0) break;
    }
    return positions;
  }

  #find(id: string): HTMLElement | null {
    const name = CSS.escape(id);
    const found = `[data-id="${name}"], [data-message="${name}"]`;
    return this.#box.current?.querySelector<HTMLElement>(found) ?? null;
  }

  /** Scrolls, so that the entries are again where they were before. */
  #keep(positions: Positions): void {
    const box = this.#box.current;
    if (box === null) return;
    for (const [id, top] of positions) {
      const entry = this.#find(id);
      if (entry === null) continue;
      box.scrollTop += entry.getBoundingClientRect().top - top;
      this.#top = box.scrollTop;
      return;
    }
  }

  /** Scrolls to the target message, or to the end if there is none. */
  #settle(): void {
    const { messageId } = this.props.jump;
    const entry = messageId === undefined ? null : this.#find(messageId);
    if (entry === null) {
      this.#setFollows(this.#isAtNewest());
      this.#toEnd();
      return;
    }
    this.#setFollows(false);
    entry.scrollIntoView({ block: "center" });
    this.#top = this.#box.current?.scrollTop ?? 0;
  }

  #toEnd(): void {
    const box = this.#box.current;
    if (box === null) return;
    box.scrollTop = box.scrollHeight;
    this.#top = box.scrollTop;
  }

  #setFollows(follows: boolean): void {
    this.#follows = follows;
    this.props.reader.follow(follows);
  }

  #isAtNewest(): boolean {
    return this.props.reader.thread.peek()?.nextAfter === undefined;
  }

  readonly #scrolled = (): void => {
    const box = this.#box.current;
    if (box === null) return;
    const left = box.scrollHeight - box.scrollTop - box.clientHeight;
    // If the reader scrolls up, even a little, the view no longer follows. If the reader does not scroll, the
    // view stays at the end while the content grows.
    const up = box.scrollTop < this.#top - 1;
    this.#top = box.scrollTop;
    const follows = this.#isAtNewest() && (left <= (up ? 4 : END_PX) || (this.#follows && !up));
    if (follows !== this.#follows) this.#setFollows(follows);
    this.#look();
  };

  #look(): void {
    const box = this.#box.current;
    if (box === null) return;
    const nearStart = box.scrollTop < NEAR_PX;
    const nearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    // If a full window is folded into a few rows, both ends are near. Reading a page at one end would drop
    // messages at the other end, and reading those would drop the first page again, without end.
    const { reader } = this.props;
    const count = reader.thread.peek()?.messages.length ?? 0;
    if (nearStart && nearEnd && count >= WINDOW_MAX) return;
    if (nearStart) reader.older();
    if (nearEnd) reader.newer();
  }

  override render() {
    const { items, head, tail } = this.props;
    return (
      <section
        ref={this.#box}
        class="scroller"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
        tabIndex={0}
        aria-label="Messages"
        onScroll={this.#scrolled}
      >
        <div ref={this.#content} class="scroller-content">
          {head}
          <ol class="entries">
            {items.map((item) => (
              <Entry key={item.id} item={item} />
            ))}
          </ol>
          {tail}
        </div>
      </section>
    );
  }
}
