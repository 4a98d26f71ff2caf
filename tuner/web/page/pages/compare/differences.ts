// What differs between trials. Pure.

import type {Trial} from "../../contract";

export interface Difference {
  name: string;
  /** One for each trial; undefined: it has no such value. */
  values: unknown[];
  differs: boolean;
}

/** Rows of values: one for each metric, by its name where all that have several call it alike. */
export function valueRows(trials: readonly Pick<Trial, "value" | "values" | "metrics">[]): {name: string; values: (number | null)[]}[] {
  const most = Math.max(1, ...trials.map(({values}) => values.length));
  return Array.from({length: most}, (_, place) => {
    const names = new Set(trials.map(({metrics}) => metrics[place]).filter((name) => name !== undefined));
    const [only] = names;
    return {name: names.size === 1 && only !== undefined ? only : most === 1 ? "value" : `value ${place + 1}`,
            values: trials.map(({value, values}) => (values.length > 1 ? values[place] ?? null : place === 0 ? value : null))};
  });
}

/** All names that any has, in the order of `first` and then as they come. */
export function differencesOf(all: readonly Record<string, unknown>[], first: readonly string[]): Difference[] {
  const names = [...new Set([...first.filter((name) => all.some((one) => name in one)), ...all.flatMap((one) => Object.keys(one))])];
  return names.map((name) => {
    const values = all.map((one) => (Object.prototype.hasOwnProperty.call(one, name) ? one[name] : undefined));
    const texts = new Set(values.map((value) => JSON.stringify(value) ?? "none"));
    return {name, values, differs: texts.size > 1};
  });
}
