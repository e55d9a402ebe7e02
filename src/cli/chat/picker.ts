// A list to choose from, which typed words filter.

import {
  Container,
  type Focusable,
  fuzzyFilter,
  getKeybindings,
  Input,
  SelectList,
  type SelectListTheme,
} from "@earendil-works/pi-tui";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Choice } from "./screen.ts";

const ROWS_MAX = 10;
const NAME_COLUMNS_MAX = 60;
/** Keys of the list. All others are typed into the filter. */
const LIST_KEYS = ["up", "down", "pageUp", "pageDown", "confirm", "cancel"] as const;

export class Picker extends Container implements Focusable {
  readonly #choices: readonly Choice[];
  readonly #theme: SelectListTheme;
  readonly #chosen: (value: string | undefined) => void;
  readonly #filter = new Input();
  #list: SelectList;

  constructor(
    choices: readonly Choice[],
    theme: SelectListTheme,
    chosen: (value: string | undefined) => void,
  ) {
    super();
    this.#choices = choices;
    this.#theme = theme;
    this.#chosen = chosen;
    this.#list = this.#listOf("");
    this.addChild(this.#filter);
    this.addChild(this.#list);
  }

  get focused(): boolean {
    return this.#filter.focused;
  }

  set focused(focused: boolean) {
    this.#filter.focused = focused;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (LIST_KEYS.some((key) => keys.matches(data, `tui.select.${key}`))) this.#list.handleInput(data);
    else {
      this.#filter.handleInput(data);
      this.removeChild(this.#list);
      this.#list = this.#listOf(this.#filter.getValue());
      this.addChild(this.#list);
    }
  }

  #listOf(words: string): SelectList {
    const found = fuzzyFilter(
      [...this.#choices],
      words,
      ({ label, description }) => `${label} ${description}`,
    );
    const items = found.map(({ value, label, description = "" }) => ({
      value,
      label: safeLine(label),
      description: safeLine(description),
    }));
    const list = new SelectList(items, ROWS_MAX, this.#theme, { maxPrimaryColumnWidth: NAME_COLUMNS_MAX });
    list.onSelect = ({ value }) => this.#chosen(value);
    list.onCancel = () => this.#chosen(undefined);
    return list;
  }
}
