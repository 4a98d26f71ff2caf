// Where lanes stand and what lies at a pixel of them: a row for each slot, or one strip for a folded node.

import {bisectRight} from "d3-array";

import type {Lanes, LaneNode} from "../contract";

const ROW_PX = 20;
const GAP_PX = 2;
const NODE_GAP_PX = 8;
const STRIP_PX = 24;
const USE_PX = 30;
const MARK_REACH_PX = 8;
const MARK_PX = 7;

export interface Row {
  node: number;
  slot: number;
  top: number;
  height: number;
  /** Indexes into the spans, by their beginning. */
  spans: number[];
  starts: number[];
}

export interface NodeBlock {
  node: number;
  top: number;
  height: number;
  folded: boolean;
  rows: Row[];
}

export interface Layout {
  lanes: Lanes;
  blocks: NodeBlock[];
  /** By node and slot. */
  rows: Row[];
  height: number;
  use: {top: number; height: number};
  byTrial: Map<number, number[]>;
  /** The row of each mark that is shown in one. */
  markRows: (Row | null)[];
}

export type LaneHit = {kind: "span"; span: number; at: number} | {kind: "mark"; mark: number; at: number};

export function layOut(lanes: Lanes, folded: (node: LaneNode) => boolean): Layout {
  const slotSpans = new Map<string, number[]>();
  const byTrial = new Map<number, number[]>();
  const {spans} = lanes;
  for (let at = 0; at < spans.from.length; ++at) {
    add(slotSpans, `${spans.node[at]}:${spans.slot[at]}`, at);
    add(byTrial, spans.trial_id[at] as number, at);
  }
  let top = USE_PX + NODE_GAP_PX;
  const blocks: NodeBlock[] = [];
  lanes.nodes.forEach((node, index) => {
    const strip = folded(node);
    const height = strip ? STRIP_PX / Math.max(1, node.slots) : ROW_PX;
    const rows: Row[] = [];
    for (let slot = 0; slot < node.slots; ++slot) {
      const inRow = (slotSpans.get(`${index}:${slot}`) ?? []).sort((a, b) => (spans.from[a] ?? 0) - (spans.from[b] ?? 0));
      rows.push({node: index, slot, top: top + slot * (strip ? height : ROW_PX + GAP_PX), height, spans: inRow,
                 starts: inRow.map((span) => spans.from[span] ?? 0)});
    }
    const block = {node: index, top, height: strip ? STRIP_PX : Math.max(1, node.slots) * (ROW_PX + GAP_PX), folded: strip, rows};
    blocks.push(block);
    top += block.height + NODE_GAP_PX;
  });
  const layout: Layout = {lanes, blocks, rows: blocks.flatMap((block) => block.rows), height: Math.max(top - NODE_GAP_PX, USE_PX),
                          use: {top: 0, height: USE_PX}, byTrial, markRows: []};
  layout.markRows = lanes.marks.map((mark, index) => (isShown(mark.kind) ? rowOfMark(layout, index) : null));
  return layout;
}

function add<K>(map: Map<K, number[]>, key: K, value: number): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

export function endOf(lanes: Lanes, span: number): number {
  return lanes.spans.to[span] ?? lanes.now;
}

/** The span of a row that holds a time; or the nearest within `reach` seconds. */
export function spanAt(layout: Layout, row: Row, at: number, reach: number): number | null {
  const place = bisectRight(row.starts, at) - 1;
  for (const candidate of [row.spans[place], row.spans[place + 1]]) {
    if (candidate === undefined) continue;
    const from = layout.lanes.spans.from[candidate] ?? 0;
    if (at >= from - reach && at <= endOf(layout.lanes, candidate) + reach) return candidate;
  }
  return null;
}

/** The row that a mark belongs to: where its trial was then. */
function rowOfMark(layout: Layout, mark: number): Row | null {
  const {marks, spans} = layout.lanes;
  const one = marks[mark];
  if (!one || one.trial_id === null) return null;
  let best: number | null = null;
  for (const span of layout.byTrial.get(one.trial_id) ?? []) {
    const away = Math.max(0, (spans.from[span] ?? 0) - one.at, one.at - endOf(layout.lanes, span));
    if (best === null || away < Math.max(0, (spans.from[best] ?? 0) - one.at, one.at - endOf(layout.lanes, best))) best = span;
  }
  return best === null ? null : rowOf(layout, best);
}

export function rowOf(layout: Layout, span: number): Row | null {
  const block = layout.blocks[layout.lanes.spans.node[span] ?? -1];
  return block?.rows[layout.lanes.spans.slot[span] ?? -1] ?? null;
}

export function rowAtPixel(layout: Layout, y: number): Row | null {
  return layout.rows.find((row) => y >= row.top && y < row.top + row.height) ?? null;
}

export function hit(layout: Layout, x: number, y: number, toPixel: (at: number) => number, toTime: (x: number) => number):
    LaneHit | null {
  const row = rowAtPixel(layout, y);
  if (!row) return null;
  const at = toTime(x);
  let nearest: number | null = null;
  let away = MARK_REACH_PX;
  layout.lanes.marks.forEach((mark, index) => {
    const distance = Math.abs(toPixel(mark.at) + shiftOf(mark.kind) - x);
    if (distance < away && layout.markRows[index] === row) [nearest, away] = [index, distance];
  });
  if (nearest !== null) return {kind: "mark", mark: nearest, at: layout.lanes.marks[nearest]?.at ?? at};
  const span = spanAt(layout, row, at, Math.abs(toTime(x + 2) - at));
  return span === null ? null : {kind: "span", span, at};
}

/** What ends a bar stands at its end, what begins or changes one at its beginning: beside the edge, not on it. */
export function shiftOf(kind: string): number {
  return kind === "prune" || kind === "fail" || kind === "pause" ? -MARK_PX : MARK_PX;
}

/** Marks that say more than the edge of a bar does. */
function isShown(kind: string): boolean {
  return ["grow", "shrink", "prune", "fail", "pause", "restart", "move"].includes(kind);
}
