// Owns the scrolling list of a conversation.
// LI1: whatever is put in front of, between or behind the messages: the one that the reader looks at stays
//      where it is, unless the reader is at the newest message and follows it.
// LI2: only a reader who is at the end is kept there.

import { Component, type ComponentChild, createRef, type VNode } from "preact";
import { Entry } from "./entry.tsx";
import type { Item } from "./items.ts";

/** So near to the end counts as at the end. CSS pixels. */
const END_PX = 48;
/** So near to an end of the window, the next page is read. */
const NEAR_PX = 1_200;

interface ListProps {
  readonly items: readonly Item[];
  readonly agentId: string;
  /** Rises when what is shown was replaced. */
  readonly jump: number;
  /** The message that the reader was led to. */
  readonly target: string | undefined;
  /** Whether the window reaches the newest message. */
  readonly atNewest: boolean;
  /** The reader has come to the end, or has left it. */
  readonly onFollow: (follows: boolean) => void;
  readonly onNearStart: () => void;
  readonly onNearEnd: () => void;
  /** What stands behind the messages. */
  readonly tail: ComponentChild;
  /** What stands before them. */
  readonly head: ComponentChild;
}

interface Place {
  readonly id: string;
  readonly top: number;
}

/** Copies the code of a block; without the right to the clipboard it is selected, ready to be copied. */
async function copyCode(button: HTMLElement): Promise<void> {
  const pre = button.closest(".code-block")?.querySelector("pre");
  if (pre == null) return;
  try {
    await navigator.clipboard.writeText(pre.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    window.getSelection()?.selectAllChildren(pre);
    button.textContent = "Selected";
  }
}

export class MessageList extends Component<ListProps> {
  readonly #box = createRef<HTMLElement>();
  readonly #content = createRef<HTMLDivElement>();
  readonly #nodes = new WeakMap<Item, VNode>();
  #drawnFor = "";
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

  override getSnapshotBeforeUpdate(): readonly Place[] {
    return this.#places();
  }

  override componentDidUpdate(before: ListProps, _: unknown, places: readonly Place[]): void {
    if (before.jump !== this.props.jump) this.#settle();
    else if (this.#follows) this.#toEnd();
    else this.#keep(places);
    this.#look();
  }

  /** Where the entries are that can be seen. */
  #places(): Place[] {
    const box = this.#box.current;
    if (box === null) return [];
    const { top, bottom } = box.getBoundingClientRect();
    const places: Place[] = [];
    for (const entry of box.querySelectorAll<HTMLElement>("[data-id]")) {
      const rect = entry.getBoundingClientRect();
      if (rect.bottom > top && rect.top < bottom) places.push({ id: entry.dataset.id ?? "", top: rect.top });
      else if (places.length > 0) break;
    }
    return places;
  }

  #find(id: string): HTMLElement | null {
    return this.#box.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`) ?? null;
  }

  /** Brings what was seen back to where it was. */
  #keep(places: readonly Place[]): void {
    const box = this.#box.current;
    if (box === null) return;
    for (const { id, top } of places) {
      const entry = this.#find(id);
      if (entry === null) continue;
      box.scrollTop += entry.getBoundingClientRect().top - top;
      this.#top = box.scrollTop;
      return;
    }
  }

  /** What is shown is new: at the message that was asked for, else at the end. */
  #settle(): void {
    const { target, atNewest } = this.props;
    const entry = target === undefined ? null : this.#find(target);
    if (entry === null) {
      this.#setFollows(atNewest);
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
    this.props.onFollow(follows);
  }

  readonly #scrolled = (): void => {
    const box = this.#box.current;
    if (box === null) return;
    const left = box.scrollHeight - box.scrollTop - box.clientHeight;
    // Whoever moves up by a little wants to leave the end; whoever does not move stays with what grows.
    const up = box.scrollTop < this.#top - 1;
    this.#top = box.scrollTop;
    const follows = this.props.atNewest && (left <= (up ? 4 : END_PX) || (this.#follows && !up));
    if (follows !== this.#follows) this.#setFollows(follows);
    this.#look();
  };

  #look(): void {
    const box = this.#box.current;
    if (box === null) return;
    if (box.scrollTop < NEAR_PX) this.props.onNearStart();
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX) this.props.onNearEnd();
  }

  /** What was drawn before is given back as it is: it is not even compared. */
  #node(item: Item): VNode {
    const known = this.#nodes.get(item);
    if (known !== undefined) return known;
    const { agentId, target } = this.props;
    const marked = item.id === target;
    const node = <Entry key={item.id} item={item} agentId={agentId} marked={marked} />;
    this.#nodes.set(item, node);
    return node;
  }

  override render() {
    const { items, head, tail, target, agentId } = this.props;
    const drawnFor = `${target} ${agentId}`;
    if (drawnFor !== this.#drawnFor) for (const item of items) this.#nodes.delete(item);
    this.#drawnFor = drawnFor;
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the click is a button's inside
      <section
        ref={this.#box}
        class="scroller"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard
        tabIndex={0}
        aria-label="Messages"
        onScroll={this.#scrolled}
        onClick={(event) => {
          const { target } = event;
          if (target instanceof HTMLElement && target.matches(".copy-code")) void copyCode(target);
        }}
      >
        <div ref={this.#content} class="scroller-content">
          {head}
          <ol class="entries">{items.map((item) => this.#node(item))}</ol>
          {tail}
        </div>
      </section>
    );
  }
}
