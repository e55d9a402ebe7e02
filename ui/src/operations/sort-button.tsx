// The heading of a column by which the reader can sort a table.

import type { ComponentChildren } from "preact";

export interface Sort<C extends string> {
  readonly column: C;
  readonly descending: boolean;
}

/** `descending`: the order after a first click. A second click reverses the order, unless `fixed` is true. */
export function SortHeading<C extends string>(props: {
  column: C;
  sort: Sort<C>;
  onSort: (sort: Sort<C>) => void;
  children: ComponentChildren;
  class?: string;
  descending?: boolean;
  fixed?: boolean;
}) {
  const { column, sort, onSort, children, class: name, descending = false, fixed = false } = props;
  const isChosen = sort.column === column;
  const next = isChosen && !fixed ? !sort.descending : descending;
  return (
    <th
      scope="col"
      class={name}
      aria-sort={isChosen ? (sort.descending ? "descending" : "ascending") : undefined}
    >
      <button type="button" class="sort" onClick={() => onSort({ column, descending: next })}>
        {children}
        <span aria-hidden="true" class="sort-mark">
          {isChosen ? (sort.descending ? "▾" : "▴") : ""}
        </span>
      </button>
    </th>
  );
}
