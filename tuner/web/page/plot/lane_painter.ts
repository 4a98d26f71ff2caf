// Lanes: bars for what held a slot, shapes for decisions, an area for how much was held.

import {bisectRight} from "d3-array";

import type {Lanes} from "../contract";
import {type Layout, type LaneHit, type Row, endOf, rowOf, shiftOf} from "./lane_rows";
import type {Frame} from "./plot";
import {type Style, rampColor, seriesColor, textOn} from "./style";

export type ColorBy = "trial" | "study" | "promise";

/** Promise of running trials, by their id. */
export type Promises = ReadonlyMap<number, number>;

const TEXT_FROM_PX = 14;
/** Shapes that would lie on one another are left out until there is room: zooming in makes some. */
const MARK_APART_PX = 9;

export function colorOf(lanes: Lanes, span: number, by: ColorBy, promises: Promises, style: Style): string {
  if ((lanes.spans.count[span] ?? 1) > 1) return style.strongLine;
  if (by === "study") return seriesColor(style, lanes.spans.study[span] ?? 0);
  if (by === "trial") return seriesColor(style, lanes.spans.trial_id[span] ?? 0);
  const promise = promises.get(lanes.spans.trial_id[span] ?? -1);
  return promise === undefined || lanes.spans.to[span] !== null ? style.line : rampColor(style, promise);
}

export function paintLanes(context: CanvasRenderingContext2D, frame: Frame, style: Style, layout: Layout, by: ColorBy,
                           promises: Promises): void {
  paintUse(context, frame, style, layout);
  const marked = markPixels(frame, layout);
  for (const block of layout.blocks) {
    context.globalAlpha = 0.55;
    context.fillStyle = style.free;
    for (const row of block.rows) context.fillRect(0, row.top, frame.width, Math.max(1, row.height - (block.folded ? 0 : 1)));
    context.globalAlpha = 1;
    for (const row of block.rows) paintRow(context, frame, style, layout, row, by, promises, block.folded, marked.get(row));
  }
  const last = new Map<Row, number>();
  layout.lanes.marks.forEach((mark, index) => {
    if (mark.kind.startsWith("node_") || mark.kind === "drain") {
      paintNodeMark(context, frame, style, layout, index);
      return;
    }
    const row = layout.markRows[index];
    const x = frame.x(mark.at) + shiftOf(mark.kind);
    if (!row || row.height <= 12 || x < 0 || x > frame.width || Math.abs(x - (last.get(row) ?? -Infinity)) < MARK_APART_PX) return;
    paintMark(context, style, mark.kind, x, row);
    last.set(row, x);
  });
}

/** Where shapes stand in each row: texts make room for them. */
function markPixels(frame: Frame, layout: Layout): Map<Row, number[]> {
  const pixels = new Map<Row, number[]>();
  layout.markRows.forEach((row, index) => {
    const mark = layout.lanes.marks[index];
    if (!row || !mark) return;
    const x = frame.x(mark.at) + shiftOf(mark.kind);
    if (x < 0 || x > frame.width) return;
    const list = pixels.get(row);
    if (list) list.push(x);
    else pixels.set(row, [x]);
  });
  for (const list of pixels.values()) list.sort((a, b) => a - b);
  return pixels;
}

function paintRow(context: CanvasRenderingContext2D, frame: Frame, style: Style, layout: Layout, row: Row, by: ColorBy,
                  promises: Promises, folded: boolean, marked: readonly number[] = []): void {
  const {spans} = layout.lanes;
  const height = Math.max(1, row.height - (folded ? 0 : 1));
  context.font = style.font;
  context.textBaseline = "middle";
  const digit = context.measureText("0").width;
  let last = -Infinity;
  // What ends before the window's beginning is not looked at: spans of a slot follow one another.
  for (let at = Math.max(0, bisectRight(row.starts, frame.x.domain[0]) - 1); at < row.spans.length; ++at) {
    const span = row.spans[at] as number;
    // Whole pixels are drawn several times as fast as parts of them.
    const left = Math.max(-2, Math.round(frame.x(spans.from[span] ?? 0)));
    const right = Math.min(frame.width + 2, Math.round(frame.x(endOf(layout.lanes, span))));
    if (left > frame.width) break;
    if (right < 0 || (left === last && right <= left + 1)) continue;
    last = left;
    const color = colorOf(layout.lanes, span, by, promises, style);
    context.fillStyle = color;
    const width = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
    context.fillRect(left, row.top, width, height);
    if (folded || width < TEXT_FROM_PX || (spans.count[span] ?? 1) > 1) continue;
    const text = String(spans.trial[span] ?? "");
    const first = Math.max(left, 0);
    const shape = marked[bisectRight(marked, left)];
    const start = shape !== undefined && shape < first + 22 ? shape + 8 : first + 4;
    if (text.length * digit > right - start - 2) continue;
    context.fillStyle = color.startsWith("#") || color.startsWith("rgb") ? textOn(color) : style.onSeries;
    context.fillText(text, start, row.top + height / 2 + 0.5);
  }
}

/** Each with a shape of its own, dark on a light rim or the other way round. */
function paintMark(context: CanvasRenderingContext2D, style: Style, kind: string, x: number, row: Row): void {
  const y = row.top + row.height / 2;
  const r = 4.5;
  const path = new Path2D();
  if (kind === "grow") {
    path.moveTo(x, y - r);
    path.lineTo(x + r, y + r - 1);
    path.lineTo(x - r, y + r - 1);
    path.closePath();
  } else if (kind === "shrink") {
    path.moveTo(x, y + r);
    path.lineTo(x + r, y - r + 1);
    path.lineTo(x - r, y - r + 1);
    path.closePath();
  } else if (kind === "fail") {
    path.moveTo(x, y - r - 1);
    path.lineTo(x + r + 1, y);
    path.lineTo(x, y + r + 1);
    path.lineTo(x - r - 1, y);
    path.closePath();
  } else if (kind === "prune") {
    path.moveTo(x - r, y - r);
    path.lineTo(x + r, y + r);
    path.moveTo(x + r, y - r);
    path.lineTo(x - r, y + r);
  } else {
    path.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
  }
  const open = kind === "prune";
  context.lineWidth = open ? 5 : 3;
  context.strokeStyle = style.panel;
  context.stroke(path);
  if (open) {
    context.lineWidth = 2;
    context.strokeStyle = style.text;
    context.stroke(path);
  } else {
    context.fillStyle = kind === "fail" ? style.bad : style.text;
    context.fill(path);
  }
}

function paintNodeMark(context: CanvasRenderingContext2D, frame: Frame, style: Style, layout: Layout, index: number): void {
  const mark = layout.lanes.marks[index];
  const block = layout.blocks[mark?.node ?? -1];
  if (!mark || !block) return;
  const x = Math.round(frame.x(mark.at)) + 0.5;
  context.strokeStyle = mark.kind === "node_back" ? style.good : mark.kind === "drain" ? style.warn : style.bad;
  context.lineWidth = 2;
  context.setLineDash(mark.kind === "drain" ? [4, 3] : []);
  context.beginPath();
  context.moveTo(x, block.top - 3);
  context.lineTo(x, block.top + block.height);
  context.stroke();
  context.setLineDash([]);
}

function paintUse(context: CanvasRenderingContext2D, frame: Frame, style: Style, layout: Layout): void {
  const {at, held, slots} = layout.lanes.use;
  const most = Math.max(1, ...slots, ...held);
  const {top, height} = layout.use;
  const y = (value: number) => top + height - (value / most) * (height - 2);
  const area = (values: readonly number[]) => {
    context.beginPath();
    context.moveTo(frame.x(at[0] ?? 0), top + height);
    values.forEach((value, index) => {
      context.lineTo(frame.x(at[index] ?? 0), y(value));
      context.lineTo(frame.x(at[index + 1] ?? layout.lanes.to), y(value));
    });
    context.lineTo(frame.x(layout.lanes.to), top + height);
    context.closePath();
  };
  if (!at.length) return;
  context.save();
  context.beginPath();
  context.rect(0, top, frame.width, height);
  context.clip();
  context.fillStyle = style.free;
  area(slots);
  context.fill();
  context.fillStyle = style.strongLine;
  area(held);
  context.fill();
  context.restore();
}

/** All bars of the trial under the cursor, and that one. */
export function paintLaneCursor(context: CanvasRenderingContext2D, frame: Frame, style: Style, layout: Layout, hit: LaneHit): void {
  const {spans, marks} = layout.lanes;
  const trial = hit.kind === "span" ? spans.trial_id[hit.span] : marks[hit.mark]?.trial_id;
  context.strokeStyle = style.text;
  for (const span of layout.byTrial.get(trial ?? -1) ?? []) {
    const row = rowOf(layout, span);
    if (!row) continue;
    const left = Math.max(-3, frame.x(spans.from[span] ?? 0));
    const right = Math.min(frame.width + 3, frame.x(endOf(layout.lanes, span)));
    if (right < 0 || left > frame.width) continue;
    context.lineWidth = hit.kind === "span" && hit.span === span ? 3 : 1.5;
    context.strokeRect(left, row.top, Math.max(2, right - left - 1), Math.max(1, row.height - 1));
  }
}
