// A table of any number of rows, of which those in sight are drawn. It scrolls within itself and can be used by the keyboard alone.
import {useCallback, useEffect, useId, useLayoutEffect, useRef, useState} from "react";
import type {KeyboardEvent, ReactNode, RefObject} from "react";

import {ROW, anchored, elementsOf, rowsWindow, scrolledTo} from "./rows_window";
import type {Sort} from "./trials_store";

export interface TableColumn {
  name: string;
  label: string;
  width: number;
  numeric: boolean;
  /** Columns that cannot be sorted have no button in their head. */
  sortable: boolean;
  cell: (row: number) => ReactNode;
}

export interface VirtualTableProps {
  table: RefObject<HTMLTableElement>;
  label: string;
  columns: readonly TableColumn[];
  /** What is shown, in order. */
  rows: Uint32Array;
  /** Grows when a row's cells have changed. */
  version: number;
  /** Changes where the person has asked for another order or choice: only then does the table go back to its top. */
  question: string;
  idOf: (row: number) => number;
  sort: Sort | null;
  onSort: (column: string) => void;
  current: number | null;
  onCurrent: (id: number | null) => void;
  chosen: ReadonlySet<number>;
  hovered: number | null;
  onHover: (id: number | null) => void;
  onOpen: (row: number) => void;
  /** Keys of the page that act on the current row; true where it was one. */
  onKey: (key: string, row: number) => boolean;
  /** What is said where no row is left. */
  empty: ReactNode;
}

export function VirtualTable(props: VirtualTableProps) {
  const {columns, rows} = props;
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [top, height] = useScroll(box, rows, props.question, props.idOf);
  const range = rowsWindow(top, height, rows.length);
  const place = props.current === null ? -1 : rows.findIndex((row) => props.idOf(row) === props.current);
  useInSight(box, place, props.current);
  const keys = rowKeys(props, place);
  const elements = useRef<ReadonlyMap<number, number>>(new Map());
  const inSight = Array.from(rows.subarray(range.from, range.to), props.idOf);
  const keyOf = elementsOf(inSight, elements.current, focusedIn(box.current, `${id}-`));
  elements.current = keyOf;
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  return (
    <div className="table-scroll" ref={box} tabIndex={-1}>
      <table ref={props.table} role="grid" aria-label={props.label} aria-rowcount={rows.length + 1} aria-colcount={columns.length}
             aria-activedescendant={place >= range.from && place < range.to ? `${id}-${props.current}` : undefined}
             className="virtual" style={{width}} tabIndex={0} onKeyDown={keys} onMouseLeave={() => props.onHover(null)}>
        <colgroup>{columns.map((column) => <col key={column.name} style={{width: column.width}} />)}</colgroup>
        <Head columns={columns} sort={props.sort} onSort={props.onSort} />
        <tbody>
          <Space rows={range.from} columns={columns.length} />
          {Array.from(rows.subarray(range.from, range.to), (row, i) => (
            <Row key={keyOf.get(props.idOf(row))} domId={`${id}-${props.idOf(row)}`} row={row} index={range.from + i} {...props} />
          ))}
          <Space rows={rows.length - range.to} columns={columns.length} />
        </tbody>
      </table>
      {rows.length === 0 && <div className="table-empty">{props.empty}</div>}
    </div>
  );
}

/** The trial of the row that has the focus, or holds what has it. */
function focusedIn(box: HTMLElement | null, prefix: string): number | null {
  const row = box?.contains(document.activeElement) ? document.activeElement?.closest("tr") : null;
  return row?.id.startsWith(prefix) ? Number(row.id.slice(prefix.length)) : null;
}

/** Where the table is scrolled to, and how much of it is seen. Rows that come in above what is read do not push it away. */
function useScroll(box: RefObject<HTMLDivElement>, rows: Uint32Array, question: string,
                   idOf: (row: number) => number): [number, number] {
  const [seen, setSeen] = useState<[number, number]>([0, 600]);
  const kept = useRef({question, first: -1, index: 0});
  const top = useRef(0);
  const look = useCallback(() => {
    const element = box.current;
    if (element === null) return;
    const {scrollTop, clientHeight} = element;
    top.current = scrollTop;
    setSeen((before) => (before[0] === scrollTop && before[1] === clientHeight ? before : [scrollTop, clientHeight]));
  }, [box]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const watch = new ResizeObserver(look);
    watch.observe(element);
    element.addEventListener("scroll", look, {passive: true});
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [box, look]);
  useLayoutEffect(() => {
    const element = box.current;
    const anew = kept.current.question !== question;
    kept.current.question = question;
    // At the top it stays there. To ask the element would be to lay the page out, once more than the frame needs.
    if (element === null || top.current === 0) return;
    if (anew) {
      element.scrollTop = 0;
    } else if (kept.current.first >= 0) {
      const after = rows.findIndex((row) => idOf(row) === kept.current.first);
      if (after !== kept.current.index) element.scrollTop = anchored(element.scrollTop, kept.current.index, after);
    }
    look();
  }, [box, rows, question, idOf, look]);
  const index = Math.min(rows.length - 1, Math.floor(seen[0] / ROW));
  const first = index < 0 ? undefined : rows[index];
  useEffect(() => {
    kept.current.first = first === undefined ? -1 : idOf(first);
    kept.current.index = index;
  });
  return seen;
}

/** The current row comes into sight when it has become it, and is left alone when other rows move it. */
function useInSight(box: RefObject<HTMLDivElement>, place: number, current: number | null): void {
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || place < 0) return;
    element.scrollTop = scrolledTo(place, element.scrollTop, element.clientHeight - ROW);
  }, [current]); // eslint-disable-line react-hooks/exhaustive-deps
}

const STEPS: Record<string, number> = {j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 15, PageUp: -15,
                                       Home: -Infinity, End: Infinity};

function rowKeys(props: VirtualTableProps, place: number) {
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("input, select")) return;
    const {rows} = props;
    const step = STEPS[event.key];
    if (step !== undefined && rows.length > 0) {
      const next = Math.max(0, Math.min(rows.length - 1, place < 0 ? (step < 0 ? rows.length - 1 : 0) : place + step));
      props.onCurrent(props.idOf(rows[next]!));
    } else if (place < 0 || (event.target as HTMLElement).closest("button, a")) {
      return;
    } else if (event.key === "Enter") {
      props.onOpen(rows[place]!);
    } else if (!props.onKey(event.key, rows[place]!)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}

function Head({columns, sort, onSort}: {columns: readonly TableColumn[]; sort: Sort | null; onSort: (name: string) => void}) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => {
          const by = sort?.column === column.name ? (sort.descending ? "descending" : "ascending") : undefined;
          return (
            <th key={column.name} scope="col" aria-sort={by} className={classOf(column)}>
              {column.sortable ? (
                <button type="button" className="head" title={`sort by ${column.label}`} onClick={() => onSort(column.name)}>
                  <bdi>{column.label}</bdi>
                  <span aria-hidden="true">{by === undefined ? "" : by === "ascending" ? " ▲" : " ▼"}</span>
                </button>
              ) : (
                column.label
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function classOf(column: TableColumn): string | undefined {
  return column.numeric ? "number" : column.sortable ? undefined : "menu";
}

function Space({rows, columns}: {rows: number; columns: number}) {
  if (rows === 0) return null;
  return (
    <tr aria-hidden="true" className="space" style={{height: rows * ROW}}>
      <td colSpan={columns} />
    </tr>
  );
}

function Row(props: VirtualTableProps & {row: number; index: number; domId: string}) {
  const {row, columns} = props;
  const id = props.idOf(row);
  const names = [
    id === props.current ? "current" : "",
    id === props.hovered ? "hovered" : "",
    props.chosen.has(id) ? "chosen" : "",
  ];
  return (
    <tr id={props.domId} aria-rowindex={props.index + 2} aria-selected={props.chosen.has(id)} className={names.join(" ")}
        onMouseEnter={() => props.onHover(id)} onClick={() => props.onCurrent(id)} onDoubleClick={() => props.onOpen(row)}>
      {columns.map((column, i) =>
        i === 0 ? (
          <th key={column.name} scope="row">{column.cell(row)}</th>
        ) : (
          <td key={column.name} className={classOf(column)}>{column.cell(row)}</td>
        ),
      )}
    </tr>
  );
}
