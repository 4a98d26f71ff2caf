// The distribution of the values of complete trials, from the best on. Pure.

export interface Spread {
  /** The best first. */
  value: readonly number[];
  /** Of the trials that have this value or a better one. */
  share: readonly number[];
}

/** From the service's answer, whose values ascend and whose shares are of trials that have at most each. */
export function spreadOf(told: {value: number[]; share: number[]} | undefined, maximize: boolean): Spread {
  if (told === undefined) return {value: [], share: []};
  if (!maximize) return told;
  // At least as good as a value are all but those that have less.
  return {value: [...told.value].reverse(), share: told.share.map((_, i) => 1 - (told.share[i - 1] ?? 0)).reverse()};
}

/** The place of the value whose share holds at a point of the axis; null: no trial is so good. */
export function placeAt({value}: Spread, at: number): number | null {
  const up = (value[value.length - 1] ?? 0) >= (value[0] ?? 0);
  let found: number | null = null;
  for (let i = 0; i < value.length && (up ? value[i]! <= at : value[i]! >= at); ++i) found = i;
  return found;
}
