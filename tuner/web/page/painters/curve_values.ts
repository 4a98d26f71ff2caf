// What is worked out from curves before they are painted: smoothing, the range without outliers. Pure.

/**
 * The exponential moving average of weight `weight` in [0, 1), without the pull towards zero at its beginning. Values that are not
 * finite stay as they are and count for nothing.
 */
export function smoothed(y: Float64Array, weight: number): Float64Array {
  if (!(weight > 0)) return y;
  const out = new Float64Array(y.length);
  let sum = 0;
  let scale = 0;
  for (let i = 0; i < y.length; ++i) {
    const value = y[i]!;
    if (Number.isFinite(value)) {
      sum = weight * sum + (1 - weight) * value;
      scale = weight * scale + (1 - weight);
      out[i] = sum / scale;
    } else {
      out[i] = value;
    }
  }
  return out;
}

export interface Range {
  low: number;
  high: number;
}

const OUTLIER_FACTOR = 3;
const MARGIN = 0.04;

/**
 * The range in which to look at these values: outliers on the worse side lie outside of it. `outside` says how many. With `positive`,
 * for logarithmic axes, values of zero and less count for nothing.
 */
export function fencedRange(values: Float64Array, maximize: boolean,
                            positive = false): Range & {outside: number} {
  const known = values.filter((value) => Number.isFinite(value) && (!positive || value > 0)).sort();
  if (known.length === 0) return positive ? {low: 0.1, high: 10, outside: 0} : {low: 0, high: 1, outside: 0};
  let low = known[0]!;
  let high = known[known.length - 1]!;
  const form = positive ? Math.log10 : (value: number) => value;
  const back = positive ? (value: number) => Math.pow(10, value) : (value: number) => value;
  const reach = OUTLIER_FACTOR * (form(quantile(known, 0.75)) - form(quantile(known, 0.25)));
  if (reach > 0 && maximize) low = Math.max(low, back(form(quantile(known, 0.25)) - reach));
  if (reach > 0 && !maximize) high = Math.min(high, back(form(quantile(known, 0.75)) + reach));
  const outside = known.filter((value) => value < low || value > high).length;
  return {...withMargin(low, high, positive), outside};
}

/** The whole range of the values, with a margin. */
export function wholeRange(values: Float64Array, positive = false): Range {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value) || (positive && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return positive ? {low: 0.1, high: 10} : {low: 0, high: 1};
  return withMargin(low, high, positive);
}

function withMargin(low: number, high: number, positive: boolean): Range {
  if (positive) {
    const ratio = high > low ? Math.pow(high / low, MARGIN) : 1.1;
    return {low: low / ratio, high: high * ratio};
  }
  const same = low === 0 ? 1 : 0.1 * Math.abs(low);
  const margin = high > low ? MARGIN * (high - low) : same;
  return {low: low - margin, high: high + margin};
}

function quantile(sorted: Float64Array, at: number): number {
  const place = at * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (sorted[above]! - sorted[below]!) * (place - below);
}
