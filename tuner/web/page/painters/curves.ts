// Paints learning curves. Of the points that share a column of pixels the first, the lowest, the highest and the last are joined, so
// that the line covers the pixels that all of its points would cover and no spike is lost. A value that is not finite is a gap.

/** What the painter asks of a canvas: a recorder of calls is one, too. */
export interface CurveContext {
  strokeStyle: string | CanvasGradient | CanvasPattern;
  fillStyle: string | CanvasGradient | CanvasPattern;
  globalAlpha: number;
  lineWidth: number;
  lineJoin: CanvasLineJoin;
  beginPath(): void;
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  stroke(): void;
  setLineDash(segments: number[]): void;
  fillRect(x: number, y: number, width: number, height: number): void;
}

/** One trial's points in the order of x. Both arrays are as long. */
export interface Curve {
  x: Float64Array;
  y: Float64Array;
}

export interface CurveStyle {
  color: string;
  width: number;
  alpha: number;
  dash: number[];
}

/** From a value to a pixel: what d3's scales are. */
export type ToPixel = (value: number) => number;

export interface CurveScales {
  x: ToPixel;
  y: ToPixel;
  width: number;
  height: number;
}

/** How far outside of the picture a line may be asked for: canvases lose precision with huge coordinates. */
const OUTSIDE = 4000;
const DOT = 4;

/** The last that are painted lie on top. `styles` has one for each curve. */
export function paintCurves(context: CurveContext, curves: readonly Curve[], scales: CurveScales,
                            styles: readonly CurveStyle[]): void {
  context.lineJoin = "round";
  curves.forEach((curve, i) => {
    const style = styles[i];
    if (style !== undefined && style.alpha > 0) paintCurve(context, curve, scales, style);
  });
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function paintCurve(context: CurveContext, curve: Curve, scales: CurveScales, style: CurveStyle): void {
  context.strokeStyle = style.color;
  context.fillStyle = style.color;
  context.globalAlpha = style.alpha;
  context.lineWidth = style.width;
  context.setLineDash(style.dash);
  const [from, to] = shown(curve.x, scales);
  const lone: number[] = [];
  context.beginPath();
  linePixels(curve, from, to, scales, context, lone);
  context.stroke();
  for (let i = 0; i < lone.length; i += 2) {
    context.fillRect(lone[i]! - DOT / 2, lone[i + 1]! - DOT / 2, DOT, DOT);
  }
}

/** The points within the picture, and one more at each side so that lines go on to its edge. */
function shown(x: Float64Array, scales: CurveScales): [number, number] {
  let from = 0;
  let to = x.length;
  while (from + 1 < to && scales.x(x[from + 1]!) < 0) ++from;
  while (to - 1 > from && scales.x(x[to - 2]!) > scales.width) --to;
  return [from, to];
}

function linePixels(curve: Curve, from: number, to: number, scales: CurveScales, context: CurveContext,
                    lone: number[]): void {
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  let points = 0;  // of the line that is being drawn
  let firstX = 0;
  let firstY = 0;
  const leave = () => {
    // The order within the column does not matter to its pixels, as long as it ends with the last.
    if (low < last) context.lineTo(column, low);
    if (high > last) context.lineTo(column, high);
    if (low < last || high > last) context.lineTo(column, last);
  };
  const end = () => {
    if (points > 0) leave();
    if (points === 1) lone.push(firstX, firstY);
    points = 0;
    column = NaN;
  };
  for (let i = from; i < to; ++i) {
    const px = Math.round(scales.x(curve.x[i]!));
    const y = curve.y[i]!;
    const py = Math.round(within(scales.y(y), scales.height));
    if (!Number.isFinite(px) || !Number.isFinite(y) || Number.isNaN(py)) {
      end();
      continue;
    }
    if (px !== column) {
      if (points > 0) leave();
      if (points === 0) {
        context.moveTo(px, py);
        firstX = px;
        firstY = py;
      } else {
        context.lineTo(px, py);
      }
      column = px;
      low = high = py;
    } else {
      low = Math.min(low, py);
      high = Math.max(high, py);
    }
    last = py;
    ++points;
  }
  end();
}

function within(pixel: number, size: number): number {
  return Math.max(-OUTSIDE, Math.min(size + OUTSIDE, pixel));
}

/** A point of a curve: indices of both. */
export interface Hit {
  curve: number;
  point: number;
}

/** The point nearest to (px, py) within `reach` pixels, or null. Later curves lie on top and win where two are as near. */
export function nearestPoint(curves: readonly Curve[], scales: CurveScales, px: number, py: number,
                             reach: number): Hit | null {
  let best: Hit | null = null;
  let least = reach * reach;
  curves.forEach((curve, number) => {
    for (let i = firstNotBefore(curve.x, scales.x, px - reach); i < curve.x.length; ++i) {
      const dx = scales.x(curve.x[i]!) - px;
      if (dx > reach) break;
      const dy = scales.y(curve.y[i]!) - py;
      const distance = dx * dx + dy * dy;
      if (distance <= least) {
        least = distance;
        best = {curve: number, point: i};
      }
    }
  });
  return best;
}

function firstNotBefore(x: Float64Array, toPixel: ToPixel, px: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (toPixel(x[middle]!) < px) low = middle + 1;
    else high = middle;
  }
  return low;
}
