// Which points of a curve are enough to paint it, as the service decides it (tuner/web/view/decimation.h). Pure.

/** Where on an axis from 0 to 1. */
export type Scale = (x: number) => number;

export function scaleOf(from: number, to: number, log: boolean): Scale {
  const of = log ? Math.log : (x: number) => x;
  const first = of(from);
  const length = of(to) - first;
  return (x) => (length > 0 ? (of(x) - first) / length : 0);
}

/** Of those in one column the first, the lowest, the highest and the last, by their places; outside of the axis those next to it. */
export function decimate(x: readonly number[], y: readonly number[], scale: Scale, width: number): number[] {
  const columnOf = (at: number) => {
    const part = scale(x[at]!);
    return part < 0 ? -1 : part > 1 ? width : Math.min(width - 1, Math.floor(part * width));
  };
  const kept: number[] = [];
  for (let from = 0; from < x.length;) {
    const column = columnOf(from);
    let to = from + 1;
    while (to < x.length && columnOf(to) === column) ++to;
    if (column < 0) kept.push(to - 1);
    else if (column === width) kept.push(from);
    else kept.push(...extremes(y, from, to));
    from = to;
  }
  return kept;
}

function extremes(y: readonly number[], from: number, to: number): number[] {
  let low = from;
  let high = from;
  const places = new Set([from, to - 1]);
  let gap = -1;
  for (let at = from; at < to; ++at) {
    const value = y[at]!;
    if (Number.isNaN(value)) {
      if (gap < 0) places.add(at);
      gap = at;
      continue;
    }
    if (!(value >= y[low]!)) low = at;
    if (!(value <= y[high]!)) high = at;
  }
  places.add(low).add(high);
  if (gap >= 0) places.add(gap);
  return [...places].sort((a, b) => a - b);
}
