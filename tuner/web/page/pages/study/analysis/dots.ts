// Trials as dots over axes: where they stand, which of them lies under the cursor, and what is said of them.

import {number, visible} from "../../../format";
import type {Frame, Move} from "../../../plot/plot";
import type {AxisOf} from "../../../plot/scales";
import type {Style} from "../../../plot/style";
import type {TrialsStore} from "../../../table/trials_store";
import type {Dimension} from "./dimensions";

export const DOT_PX = 3.5;
const REACH_PX = 14;

/** In the units of the axes. */
export interface Place {
  x: number;
  y: number;
}

/** What a dimension has in the unit of its axis: a choice, its place. */
export function coordinateOf(of: Dimension, trials: TrialsStore, row: number): number {
  const cell = trials.cell(of.column, row);
  if (cell === null) return NaN;
  if (of.words === null) return typeof cell === "number" ? cell : NaN;
  const place = of.words.indexOf(String(cell));
  return place < 0 ? NaN : place;
}

export function axisOf(of: Dimension): AxisOf {
  if (of.words === null) {
    const room = of.log ? 0 : (of.high - of.low) * 0.05;
    const spread = of.log ? (of.high / of.low) ** 0.03 : 1;
    const grown = of.log ? [of.low / spread, of.high * spread] as const : [of.low - room, of.high + room] as const;
    return {kind: of.log ? "log" : "linear", domain: grown, label: visible(of.label)};
  }
  const words = of.words;
  return {kind: "linear", domain: [-0.5, words.length - 0.5], label: visible(of.label),
          format: (place) => (Number.isInteger(place) ? visible(words[place] ?? "").slice(0, 12) : "")};
}

export function cellText(of: Dimension, trials: TrialsStore, row: number): string {
  const cell = trials.cell(of.column, row);
  return typeof cell === "number" ? number(cell, 4) : visible(cell ?? "–");
}

/** The index of the dot nearest to a pixel; null: none is near. */
export function nearestDot(dots: readonly Place[], px: number, py: number, frame: Frame): number | null {
  let nearest: number | null = null;
  let away = REACH_PX ** 2;
  dots.forEach((one, index) => {
    const distance = (frame.x(one.x) - px) ** 2 + (frame.y(one.y) - py) ** 2;
    if (distance < away) [nearest, away] = [index, distance];
  });
  return nearest;
}

export function stepped(points: number, place: number | null, move: Move): number | null {
  if (points === 0) return null;
  if (move === "end") return points - 1;
  if (place === null || move === "home") return 0;
  return Math.min(points - 1, Math.max(0, place + (move === "left" || move === "down" ? -1 : 1)));
}

export function dot(context: CanvasRenderingContext2D, frame: Frame, at: Place, color: string, radius: number): void {
  context.fillStyle = color;
  context.beginPath();
  context.arc(frame.x(at.x), frame.y(at.y), radius, 0, 2 * Math.PI);
  context.fill();
}

export function ring(context: CanvasRenderingContext2D, frame: Frame, at: Place, style: Style): void {
  context.strokeStyle = style.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(frame.x(at.x), frame.y(at.y), DOT_PX + 3.5, 0, 2 * Math.PI);
  context.stroke();
}
