// Tables whose columns a view declares. A reader can sort by the columns that allow it.

import type { ComponentChildren } from "preact";

export interface Sort<C extends string> {
  readonly column: C;
  readonly descending: boolean;
}

export interface Column<R, C extends string = never> {
  readonly title: ComponentChildren;
  /** Explains the column, as a tooltip. */
  readonly about?: string;
  readonly class?: string;
  readonly cell: (row: R) => ComponentChildren;
  /** The cell names the row. */
  readonly isName?: true;
  /** The name of the order that the column stands for. */
  readonly sort?: C;
  /** The first click sorts from high to low. */
  readonly descending?: true;
  /** The cell of the last row, if the table has a row of sums. */
  readonly foot?: ComponentChildren;
}

/** `list`: the keys of lists move in its rows. */
export function Table<R, C extends string = never>(props: {
  label: string;
  columns: readonly Column<R, C>[];
  rows: readonly R[];
  rowKey: (row: R) => string | number;
  rowClass?: (row: R) => string | undefined;
  class?: string;
  box?: string;
  list?: true;
  sort?: Sort<C>;
  onSort?: (sort: Sort<C>) => void;
}) {
  const { columns, rows, list, sort, box = "scroll-x card" } = props;
  const cells = (draw: (column: Column<R, C>) => ComponentChildren) =>
    columns.map((column, at) => {
      const Cell = column.isName ? "th" : "td";
      return (
        <Cell key={at} class={column.class} scope={column.isName && "row"}>
          {draw(column)}
        </Cell>
      );
    });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
    <section class={box} aria-label={props.label} tabIndex={0}>
      <table class={props.class} data-list={list && ""}>
        <thead>
          <tr>
            {columns.map(({ title, about, class: its, sort: own, descending = false }, at) => {
              const chosen = own !== undefined && own === sort?.column ? sort : undefined;
              const order = chosen && (chosen.descending ? "descending" : "ascending");
              const next = chosen === undefined ? descending : !chosen.descending;
              return (
                <th key={at} scope="col" class={its} title={about} aria-sort={order}>
                  {own === undefined ? (
                    title
                  ) : (
                    <button
                      type="button"
                      class="plain sort"
                      onClick={() => props.onSort?.({ column: own, descending: next })}
                    >
                      {title}
                      <span aria-hidden="true" class="sort-mark">
                        {order && (order === "descending" ? "▾" : "▴")}
                      </span>
                    </button>
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={props.rowKey(row)} class={props.rowClass?.(row)} data-item={list && ""}>
              {cells(({ cell }) => cell(row))}
            </tr>
          ))}
        </tbody>
        {columns.some(({ foot }) => foot !== undefined) && (
          <tfoot>
            <tr>{cells(({ foot }) => foot)}</tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}
