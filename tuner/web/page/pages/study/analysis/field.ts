// A value over two axes, between the trials that are known: each point is the mean of the trials around it, weighted by their
// nearness. Where no trial is near, nothing is said. Pure.

export interface Points {
  /** From 0 to 1. */
  x: Float64Array;
  y: Float64Array;
  value: Float64Array;
}

/** Row by row, from the lowest y. NaN: no trial is near. */
export interface Field {
  columns: number;
  rows: number;
  values: Float64Array;
}

const REACH = 0.2;

export function fieldOf(points: Points, columns: number, rows: number): Field {
  const values = new Float64Array(columns * rows).fill(NaN);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      values[row * columns + column] = valueAt(points, (column + 0.5) / columns, (row + 0.5) / rows);
    }
  }
  return {columns, rows, values};
}

function valueAt(points: Points, x: number, y: number): number {
  let sum = 0;
  let weights = 0;
  let nearest = Infinity;
  for (let i = 0; i < points.x.length; ++i) {
    const away = (points.x[i]! - x) ** 2 + (points.y[i]! - y) ** 2;
    nearest = Math.min(nearest, away);
    // One that lies on the point outweighs the others, and no more.
    const weight = 1 / (away * away + 1e-6);
    sum += weight * points.value[i]!;
    weights += weight;
  }
  return nearest > REACH * REACH ? NaN : sum / weights;
}
