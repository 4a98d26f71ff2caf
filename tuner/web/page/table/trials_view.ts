// What of a table of trials is in the address: conditions, order, columns, chosen rows.

import {useMemo} from "react";

import type {Direction, Study} from "../contract";
import {setQuery, useQueryText} from "../url";
import {type ColumnChoice, columnsOf, formatColumns, usualColumns} from "./columns";
import {type Condition, formatConditions, parseConditions} from "./conditions";
import type {Sort, TrialsStore} from "./trials_store";

export interface TrialsView {
  conditions: Condition[];
  errors: string[];
  sort: Sort;
  columns: ColumnChoice;
  chosen: ReadonlySet<number>;
  /** Changes where the person asks for another order or choice. */
  question: string;
  setConditions: (conditions: readonly Condition[]) => void;
  sortBy: (column: string) => void;
  setColumns: (columns: readonly string[] | null) => void;
  toggleChosen: (id: number) => void;
}

const NEWEST: Sort = {column: "number", descending: true};

export function parseSort(text: string | null): Sort {
  if (text === null || text === "") return NEWEST;
  return text.startsWith("-") ? {column: text.slice(1), descending: true} : {column: text, descending: false};
}

export function formatSort(sort: Sort): string | null {
  if (sort.column === NEWEST.column && sort.descending === NEWEST.descending) return null;
  return `${sort.descending ? "-" : ""}${sort.column}`;
}

/** The first click on a head: the best on top for values, the greatest for other numbers, words by the alphabet. */
export function nextSort(sort: Sort, column: string, numeric: boolean, direction: Direction): Sort {
  if (sort.column === column) return {column, descending: !sort.descending};
  return {column, descending: column === "value" ? direction === "maximize" : numeric};
}

export function parseIds(text: string | null): number[] {
  const ids = (text ?? "").split(",").filter((part) => /^\d+$/.test(part)).map(Number);
  return [...new Set(ids)];
}

export function useTrialsView(study: Study, kind: "pool" | "ask" | "queue", trials: TrialsStore, version: number): TrialsView {
  const filter = useQueryText("f") ?? "";
  const order = useQueryText("sort");
  const cols = useQueryText("cols") ?? "";
  const ids = useQueryText("chosen");
  const {conditions, errors} = useMemo(() => parseConditions(filter), [filter]);
  const sort = useMemo(() => parseSort(order), [order]);
  const chosen = useMemo(() => new Set(parseIds(ids)), [ids]);
  const names = useMemo(() => trials.names(), [trials, version]); // eslint-disable-line react-hooks/exhaustive-deps
  const columns = useMemo(() => {
    // What no search space describes, as the jobs of a simulated cluster, is what the trials have.
    const told = names.filter((name) => name.startsWith("p:")).map((name) => ({name: name.slice(2)}));
    const parameters = study.parameters.length > 0 ? study.parameters : told;
    return columnsOf(cols, usualColumns(kind, parameters, study.directions.length, names), names);
  }, [cols, kind, study.parameters, study.directions.length, names]);
  return {
    conditions, errors, sort, columns, chosen, question: `${filter}\n${order}`,
    setConditions: (next) => setQuery({f: next.length === 0 ? null : formatConditions(next)}, "push"),
    sortBy: (column) =>
      setQuery({sort: formatSort(nextSort(sort, column, trials.kindOf(column) === "number", study.direction))}),
    setColumns: (next) => setQuery({cols: next === null ? null : formatColumns(next)}),
    toggleChosen: (id) => {
      const next = chosen.has(id) ? [...chosen].filter((other) => other !== id) : [...chosen, id];
      setQuery({chosen: next.length === 0 ? null : next.join(",")});
    },
  };
}
