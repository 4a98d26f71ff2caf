// The table of a study's trials, with its chips, columns, actions and export.

import {type RefObject, useCallback, useMemo, useRef, useState} from "react";

import type {Role, Study, StudyRow} from "../../contract";
import {count} from "../../format";
import type {Key} from "../../keys";
import {Link} from "../../parts/link";
import {Problem} from "../../parts/problem";
import {store as service} from "../../store";
import {Swatch, cellOf} from "../../table/cells";
import {Chips} from "../../table/chips";
import {ColumnChooser} from "../../table/column_chooser";
import {labelOf, objectiveNames, widthOf} from "../../table/columns";
import {csv} from "../../table/csv";
import {ShownRows} from "../../table/shown_rows";
import {type TrialsView, useTrialsView} from "../../table/trials_view";
import type {TrialsStore} from "../../table/trials_store";
import type {Trials} from "../../table/use_trials";
import {type TableColumn, VirtualTable} from "../../table/virtual_table";
import {addressOf, go, setQuery} from "../../url";
import {useCopy} from "./clipboard";
import {Clone} from "./clone";
import {download, fileName} from "./download";
import {useNewestKeys} from "./newest_keys";
import {isOpen} from "./open_trials";
import {parametersOf} from "./parameters";
import {type ActedOn, TrialActions, cancelTrial, mayAct} from "./trial_actions";

interface TrialsTableProps {
  study: Study;
  row: StudyRow;
  role: Role;
  /** Slots of the pool. */
  slots: number;
  trials: Trials;
  hovered: number | null;
  onHover: (id: number | null) => void;
}

export function TrialsTable(props: TrialsTableProps) {
  const {study, row, trials} = props;
  const view = useTrialsView(study, row.kind, trials.store, trials.version);
  const {rows, hidden} = useRows(trials, view);
  const [current, setCurrent] = useState<number | null>(null);
  const [actedId, setActedId] = useState<number | null>(null);
  const actedRow = actedId === null ? undefined : trials.store.rowOf(actedId);
  // As it is now, not as it was when the dialog was opened.
  const acted = actedRow === undefined ? null : actedOn(trials.store, actedRow);
  const [cloned, setCloned] = useState<ActedOn | null>(null);
  const [choosing, setChoosing] = useState(false);
  const [copy, copied] = useCopy();
  const label = useCallback((column: string) => labelOf(column, study.metric ?? "value", objectiveNames(study)), [study]);
  const idOf = useCallback((at: number) => trials.store.number("id", at), [trials.store]);
  const numberOf = useCallback((at: number) => trials.store.number("number", at), [trials.store]);
  const acts = mayAct(props.role) && row.kind !== "ask";
  const act = useCallback((at: number) => setActedId(trials.store.number("id", at)), [trials.store]);
  const columns = useColumns(trials, view, label, study.id, acts ? act : null);
  const copyRow = (id: number, number: number) =>
    copy(`Parameters of trial ${number}`, JSON.stringify(parametersOf(trials.store, trials.store.rowOf(id)), null, 2));
  const table = useRef<HTMLTableElement>(null);
  const onKey = useRowKeys({...props, view, rows, current, setCurrent, acts, act, idOf, numberOf, copyRow, table});
  const exported = () => {
    const shown = ["number", ...view.columns.shown];
    const text = csv(shown, Array.from(rows, (at) => shown.map((column) => trials.store.cell(column, at))));
    download(fileName(study.name, ".csv"), new Blob([text], {type: "text/csv"}));
  };
  useExportKey(exported);
  return (
    <section className="panel" aria-label="Trials">
      <header className="panel-head">
        <h2>Trials</h2>
        <span className="muted" role="status">{countText(rows.length, trials)}</span>
        {copied}
        {view.chosen.size > 0 && (
          <>
            <button type="button" disabled={view.chosen.size < 2} onClick={() => go(addressOf.compare([...view.chosen]))}>
              Compare {view.chosen.size}
            </button>
            <button type="button" onClick={() => setQuery({chosen: null})}>Choose none</button>
          </>
        )}
        <button type="button" onClick={() => setChoosing(true)}>Columns</button>
        <button type="button" onClick={exported}>CSV</button>
      </header>
      {trials.error !== null && <Problem error={trials.error} what="Trials" />}
      <Chips conditions={view.conditions} errors={view.errors} onConditions={view.setConditions} trials={trials.store}
             columns={["number", ...view.columns.all]} labelOf={label} />
      <VirtualTable table={table} label={`Trials of ${study.name}`} columns={columns} rows={rows} version={trials.version}
                    question={view.question} idOf={idOf} sort={view.sort} onSort={view.sortBy} current={current}
                    onCurrent={setCurrent} chosen={view.chosen} hovered={props.hovered} onHover={props.onHover}
                    onOpen={(at) => go(addressOf.trial(study.id, numberOf(at)))} onKey={onKey}
                    empty={<Empty trials={trials} view={view} hidden={hidden} ask={row.kind === "ask"} />} />
      {choosing && (
        <ColumnChooser choice={view.columns} labelOf={label} onShown={view.setColumns} onClose={() => setChoosing(false)} />
      )}
      {acted !== null && (
        <TrialActions trial={acted} most={props.slots} onClose={() => setActedId(null)}
                      onOpen={() => go(addressOf.trial(study.id, acted.number))}
                      onCopy={() => copyRow(acted.id, acted.number)}
                      onClone={() => {
                        setActedId(null);
                        setCloned(acted);
                      }} />
      )}
      {cloned !== null && (
        <Clone study={study} trial={cloned} parameters={parametersOf(trials.store, trials.store.rowOf(cloned.id))}
               onCloned={(number) => go(addressOf.trial(study.id, number))} onClose={() => setCloned(null)} />
      )}
    </section>
  );
}

function actedOn(trials: TrialsStore, at: number): ActedOn {
  const pinned = trials.number("pinned", at);
  return {id: trials.number("id", at), number: trials.number("number", at), state: trials.word("state", at) ?? "",
          slots: trials.number("slots", at) || 0, pinned: Number.isNaN(pinned) ? null : pinned};
}

/** What the table shows, in order. */
function useRows(trials: Trials, view: TrialsView): {rows: Uint32Array; hidden: number} {
  const {store} = trials;
  const shown = useMemo(() => new ShownRows(store), [store]);
  return useMemo(() => {
    const rows = shown.of(view.conditions, view.sort);
    return {rows, hidden: store.rows - rows.length};
  }, [store, shown, store.version, view.conditions, view.sort]); // eslint-disable-line react-hooks/exhaustive-deps
}

function countText(shown: number, trials: Trials): string {
  const {total, store} = trials;
  if (total === null) return "reading …";
  if (store.rows < total) return `${count(store.rows)} of ${count(total)} read`;
  return shown === store.rows ? count(total) : `${count(shown)} of ${count(total)}`;
}

function useColumns(trials: Trials, view: TrialsView, label: (column: string) => string, study: number,
                    act: ((row: number) => void) | null): TableColumn[] {
  const {store, version} = trials;
  const {chosen, toggleChosen} = view;
  const shown = view.columns.shown.join("\n");
  return useMemo(() => {
    const now = service.now();
    const first: TableColumn = {
      name: "number", label: "#", width: 104, numeric: false, sortable: true,
      cell: (row) => <NumberCell store={store} row={row} study={study} chosen={chosen} onToggle={toggleChosen} />,
    };
    const others = view.columns.shown.map((name): TableColumn => ({
      name, label: label(name), width: widthOf(name, label(name)), numeric: store.kindOf(name) !== "words", sortable: true,
      cell: (row) => cellOf(store, name, row, now),
    }));
    const last: TableColumn[] = act === null ? [] : [{
      name: "", label: "", width: 48, numeric: false, sortable: false,
      cell: (row) => (
        <button type="button" className="row-menu" aria-label={`What to do with trial ${store.number("number", row)}`}
                onClick={() => act(row)}>…</button>
      ),
    }];
    return [first, ...others, ...last];
  }, [store, version, shown, label, study, act, chosen]); // eslint-disable-line react-hooks/exhaustive-deps
}

function NumberCell({store, row, study, chosen, onToggle}: {store: TrialsStore; row: number; study: number;
                                                         chosen: ReadonlySet<number>; onToggle: (id: number) => void}) {
  const id = store.number("id", row);
  const number = store.number("number", row);
  return (
    <span className="row-number">
      <input type="checkbox" checked={chosen.has(id)} aria-label={`Choose trial ${number}`} onChange={() => onToggle(id)} />
      <Swatch place={id} />
      <Link to={addressOf.trial(study, number)}>{number}</Link>
    </span>
  );
}

interface KeysOf extends TrialsTableProps {
  view: TrialsView;
  rows: Uint32Array;
  current: number | null;
  setCurrent: (id: number | null) => void;
  acts: boolean;
  act: (row: number) => void;
  idOf: (row: number) => number;
  numberOf: (row: number) => number;
  copyRow: (id: number, number: number) => void;
  table: RefObject<HTMLTableElement>;
}

/** Keys that act on the current row, wherever the focus is; those of the table itself when it has the focus. */
function useRowKeys(of: KeysOf): (key: string, row: number) => boolean {
  const {rows, current, view, setCurrent, idOf, numberOf, trials} = of;
  const onKey = (key: string, row: number): boolean => {
    const id = idOf(row);
    const open = isOpen(trials.store.word("state", row) ?? "");
    if (key === " ") view.toggleChosen(id);
    else if (key === "x" && of.acts && open) cancelTrial({id, number: numberOf(row)});
    else if (key === "p" && of.acts && open) of.act(row);
    else return false;
    return true;
  };
  const step = (by: number) => {
    if (rows.length === 0) return;
    of.table.current?.focus({preventScroll: true});
    const place = rows.findIndex((row) => idOf(row) === current);
    setCurrent(idOf(rows[Math.max(0, Math.min(rows.length - 1, place + by))]!));
  };
  const onCurrent = (run: (row: number) => void) => {
    const row = current === null ? undefined : trials.store.rowOf(current);
    if (row !== undefined) run(row);
  };
  const keys: Key[] = [
    {key: "j", does: "the next trial of the table: Enter opens it, Space chooses it", run: () => step(1)},
    {key: "k", does: "the trial before it", run: () => step(-1)},
    {key: "c", does: "compare the chosen trials", run: () => view.chosen.size > 1 && go(addressOf.compare([...view.chosen]))},
  ];
  if (of.acts) {
    keys.push({key: "x", does: "cancel the current trial; Undo for 5 s", run: () => onCurrent((row) => onKey("x", row))},
              {key: "p", does: "pin the current trial", run: () => onCurrent((row) => onKey("p", row))});
  }
  useNewestKeys(keys);
  return onKey;
}

function useExportKey(exported: () => void): void {
  useNewestKeys([{key: "e", does: "the table as CSV", run: exported}]);
}

function Empty({trials, view, hidden, ask}: {trials: Trials; view: TrialsView; hidden: number; ask: boolean}) {
  if (trials.total === null) return <p className="muted">Reading …</p>;
  if (hidden === 0) {
    const next = ask ? "A client's first ask makes one." : "The first starts as soon as a slot is free.";
    return <p className="muted">No trial yet. {next}</p>;
  }
  const alone = view.conditions.length === 1;
  return (
    <p>
      {count(hidden)} trials, and none meets {alone ? "this filter" : "all filters"}: take {alone ? "it" : "one"} off above.
    </p>
  );
}
