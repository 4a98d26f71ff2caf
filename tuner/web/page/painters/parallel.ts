// Paints parallel coordinates: a line for each trial, from axis to axis. Lines of one colour are one path.

import type {CurveContext} from "./curves";

/** Where each row is on an axis, from 0 (below) to 1 (above). NaN: it has no value there. */
export type Positions = Float64Array;

export interface ParallelScales {
  /** The pixels of the axes, from left to right. */
  x: readonly number[];
  height: number;
}

export interface ParallelStyle {
  /** The colours of groups. */
  colors: readonly string[];
  alpha: number;
  width: number;
}

/** `groupOf` says which colour a row has; rows without one are left out. */
export function paintParallel(context: CurveContext, axes: readonly Positions[], rows: ArrayLike<number>,
                              groupOf: (row: number) => number, scales: ParallelScales, style: ParallelStyle): void {
  const groups: number[][] = style.colors.map(() => []);
  for (let i = 0; i < rows.length; ++i) groups[groupOf(rows[i]!)]?.push(rows[i]!);
  context.lineWidth = style.width;
  context.globalAlpha = style.alpha;
  context.setLineDash([]);
  groups.forEach((group, i) => {
    if (group.length === 0) return;
    context.strokeStyle = style.colors[i]!;
    context.beginPath();
    for (const row of group) linePixels(context, axes, row, scales);
    context.stroke();
  });
  context.globalAlpha = 1;
}

/** A row without a value at an axis has a gap there. */
function linePixels(context: CurveContext, axes: readonly Positions[], row: number, scales: ParallelScales): void {
  let drawing = false;
  axes.forEach((positions, i) => {
    const at = positions[row]!;
    if (Number.isNaN(at)) {
      drawing = false;
      return;
    }
    const y = Math.round((1 - at) * scales.height);
    if (drawing) context.lineTo(scales.x[i]!, y);
    else context.moveTo(scales.x[i]!, y);
    drawing = true;
  });
}
