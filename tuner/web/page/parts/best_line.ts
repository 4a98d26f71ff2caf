// A study's best value over time as a small line. Pure.

export interface Improvements {
  at: readonly number[];
  value: readonly number[];
}

/**
 * The points of a line of steps in a box of that size, from the first improvement until `until`; "" where there is nothing to
 * compare. Better is up, whatever the direction.
 */
export function bestLine({at, value}: Improvements, maximize: boolean, until: number, width: number, height: number): string {
  const first = at[0];
  const last = value[value.length - 1];
  if (first === undefined || last === undefined || at.length < 2) return "";
  const end = Math.max(until, at[at.length - 1] ?? first);
  const x = (moment: number) => round(end > first ? ((moment - first) / (end - first)) * width : 0);
  const [least, most] = [Math.min(...value), Math.max(...value)];
  const y = (one: number) => round(height * (maximize ? (most - one) / (most - least) : (one - least) / (most - least)));
  const points = at.flatMap((moment, i) => [...(i > 0 ? [`${x(moment)},${y(value[i - 1]!)}`] : []), `${x(moment)},${y(value[i]!)}`]);
  return [...points, `${x(end)},${y(last)}`].join(" ");
}

/** With what the service's answer, which may be some seconds old, does not know yet. */
export function withNewest(of: Improvements, value: number | null, maximize: boolean, now: number): Improvements {
  const last = of.value[of.value.length - 1];
  if (value === null || (last !== undefined && (maximize ? value <= last : value >= last))) return of;
  return {at: [...of.at, now], value: [...of.value, value]};
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
