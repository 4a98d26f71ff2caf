// Lanes of one study on a large pool: nodes on which it has been. Pure.

import type {Lanes} from "../contract";

export function nodesInUse(lanes: Lanes): Lanes {
  const used = new Set(lanes.spans.node);
  const kept = lanes.nodes.map((node, before) => ({node, before})).filter(({before}) => used.has(before));
  const placeOf = new Map(kept.map(({before}, place) => [before, place]));
  return {
    ...lanes,
    nodes: kept.map(({node}) => node),
    spans: {...lanes.spans, node: lanes.spans.node.map((node) => placeOf.get(node) ?? 0)},
    marks: lanes.marks.map((mark) => ({...mark, node: mark.node === null ? null : placeOf.get(mark.node) ?? null})),
  };
}
