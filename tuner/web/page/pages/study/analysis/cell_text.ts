import {number, visible} from "../../../format";
import type {TrialsStore} from "../../../table/trials_store";

/** A cell in words. */
export function cellText(trials: TrialsStore, column: string, row: number): string {
  const value = trials.cell(column, row);
  return typeof value === "string" ? visible(value).slice(0, 60) : number(value, 4);
}
