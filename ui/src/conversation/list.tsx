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

export class MessageList extends Component<ListProps> {
  #follows = true;
  #top = 0;
  readonly #observer = new ResizeObserver(() => this.#follows && this.#toEnd());

  readonly #ref = createRef<HTMLElement>();

  get #box(): HTMLElement {
    return this.#ref.current as HTMLElement;
  }

  /** Distance of the end of the messages from the end of the view, in CSS pixels. */
  get #left(): number {
    return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight;
  }

  get #isAtNewest(): boolean {
    return this.props.reader.thread.peek()?.nextAfter === undefined;
  }

  override componentDidMount(): void {
    for (const part of [this.#box, ...this.#box.children]) this.#observer.observe(part);
    this.#settle();
    this.#readNear();
  }

  override componentWillUnmount(): void {
    this.#observer.disconnect();
  }

  /** Returns the visible entries, by id, with their distance from the top of the window. */
  override getSnapshotBeforeUpdate(): ReadonlyMap<string, number> {
    const positions = new Map<string, number>();
    const { top, bottom } = this.#box.getBoundingClientRect();
    for (const entry of this.#box.querySelectorAll<HTMLElement>("[data-id]")) {
      const rect = entry.getBoundingClientRect();
      if (rect.bottom > top && rect.top < bottom) positions.set(entry.dataset.id ?? "", rect.top);
      else if (positions.size > 0) break;
    }
    return positions;
  }

  override componentDidUpdate(before: ListProps, _: unknown, positions: ReadonlyMap<string, number>): void {
    if (before.jump !== this.props.jump) this.#settle();
    else if (this.#follows) this.#toEnd();
    else this.#keep(positions);
    this.#readNear();
  }

  #find(id: string): HTMLElement | null {
    const name = CSS.escape(id);
    return this.#box.querySelector<HTMLElement>(`[data-id="${name}"], [data-message="${name}"]`);
  }

  #scrollTo(top: number): void {
    this.#box.scrollTop = top;
    this.#top = this.#box.scrollTop;
  }

  #toEnd(): void {
    this.#scrollTo(this.#box.scrollHeight);
  }

  /** Scrolls, so that the entries are again where they were before. */
  #keep(positions: ReadonlyMap<string, number>): void {
    for (const [id, top] of positions) {
      const entry = this.#find(id);
      if (entry === null) continue;
      this.#scrollTo(this.#box.scrollTop + entry.getBoundingClientRect().top - top);
      return;
    }
  }

  /** Scrolls to the target message, or to the end if there is none. */
  #settle(): void {
    const { messageId } = this.props.jump;
    const entry = messageId === undefined ? null : this.#find(messageId);
    this.#setFollows(entry === null && this.#isAtNewest);
    if (entry === null) this.#toEnd();
    else entry.scrollIntoView({ block: "center" });
    this.#top = this.#box.scrollTop;
  }

  #setFollows(follows: boolean): void {
    this.#follows = follows;
    this.props.reader.follow(follows);
  }

  readonly #noteScroll = (): void => {
    // If the reader scrolls up, even a little, the view no longer follows. If the reader does not scroll, the
    // view stays at the end while the content grows.
    const up = this.#box.scrollTop < this.#top - 1;
    this.#top = this.#box.scrollTop;
    const follows = this.#isAtNewest && (this.#left <= (up ? 4 : END_PX) || (this.#follows && !up));
    if (follows !== this.#follows) this.#setFollows(follows);
    this.#readNear();
  };

  /** Reads the next page at each end that is near. */
  #readNear(): void {
    const { reader } = this.props;
    const nearStart = this.#box.scrollTop < NEAR_PX;
    const nearEnd = this.#left < NEAR_PX;
    // If a full window is folded into a few rows, both ends are near. Reading a page at one end would drop
    // messages at the other end, and reading those would drop the first page again, without end.
    const count = reader.thread.peek()?.messages.length ?? 0;
    if (nearStart && nearEnd && count >= WINDOW_MAX) return;
    if (nearStart) reader.older();
    if (nearEnd) reader.newer();
  }

  override render({ items, head, tail }: ListProps) {
    return (
      <section
        ref={this.#ref}
        class="scroller"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
        tabIndex={0}
        aria-label="Messages"
        onScroll={this.#noteScroll}
      >
        <div class="scroller-content">
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
