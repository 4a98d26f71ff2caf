// What differs between trials. Pure.

export interface Difference {
  name: string;
  /** One for each trial; undefined: it has no such value. */
  values: unknown[];
  differs: boolean;
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
