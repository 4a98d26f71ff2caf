// The same bars by study instead of by node: of each study as many rows as it held slots at a time. Pure.

import type {Lanes} from "../contract";
import {endOf} from "./lane_rows";

export type GroupBy = "node" | "study";

/** Bars that begin within so long are of one decision. */
const AT_ONCE_S = 0.05;

/**
 * Indexes of bars and marks stay. "Nodes" are then the studies that have bars, in the order of their ids, and "slots" rows without
 * a meaning of their own: a bar goes on in the row of its trial where that is free, else in the first free one.
 */
export function byStudy(lanes: Lanes): Lanes {
  const {spans} = lanes;
  const shown = [...new Set(spans.study)].sort((a, b) => (lanes.studies[a]?.id ?? 0) - (lanes.studies[b]?.id ?? 0));
  const placeOf = new Map(shown.map((study, place) => [study, place]));
  const rows = shown.map((study) => packed(lanes, spans.from.map((_, at) => at).filter((at) => spans.study[at] === study)));
  const slot = new Array<number>(spans.from.length).fill(0);
  rows.forEach(({rowOf}) => rowOf.forEach((row, span) => { slot[span] = row; }));
  return {
    ...lanes,
    nodes: shown.map((study, place) => ({name: lanes.studies[study]?.name ?? "?", slots: rows[place]?.height ?? 0, gpu_type: "", up: true})),
    spans: {...spans, node: spans.study.map((study) => placeOf.get(study) ?? 0), slot},
    marks: lanes.marks.map((mark) => ({...mark, node: null})),
  };
}

interface Row {
  until: number;
  trial: number;
}

function packed(lanes: Lanes, of: number[]): {rowOf: Map<number, number>; height: number} {
  const {spans} = lanes;
  const from = (span: number) => spans.from[span] ?? 0;
  of.sort((a, b) => from(a) - from(b) || (spans.node[a] ?? 0) - (spans.node[b] ?? 0) || (spans.slot[a] ?? 0) - (spans.slot[b] ?? 0));
  const rows: Row[] = [];
  const rowOf = new Map<number, number>();
  const put = (span: number, row: number) => {
    rows[row] = {until: endOf(lanes, span), trial: spans.trial_id[span] ?? -1};
    rowOf.set(span, row);
  };
  for (let first = 0; first < of.length;) {
    let end = first;
    while (end < of.length && from(of[end]!) - from(of[first]!) <= AT_ONCE_S) ++end;
    // Who goes on keeps its row, before others look for one.
    const others = of.slice(first, end).filter((span) => {
      const own = rows.findIndex((row) => row.trial === spans.trial_id[span] && row.until <= from(span) + AT_ONCE_S);
      if (own >= 0) put(span, own);
      return own < 0;
    });
    for (const span of others) {
      const free = rows.findIndex((row) => row.until <= from(span) + AT_ONCE_S);
      put(span, free < 0 ? rows.length : free);
    }
    first = end;
  }
  return {rowOf, height: rows.length};
}
