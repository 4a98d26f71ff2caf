// The best trials of several objectives, as points in the picture of two of them. Pure.

import type {Front} from "../../../contract";
import type {Place} from "./dots";

/**
 * The edge of what the points of a front leave for others, as corners from left to right. Of more than two objectives the front's
 * points do not lie on one edge: then what is drawn is that of those which are best in these two.
 */
export function frontEdge(points: readonly Place[], maximizeX: boolean, maximizeY: boolean): Place[] {
  const better = (a: number, b: number) => (maximizeY ? a > b : a < b);
  // From the best in x: each next one on the edge is better in y than all before it.
  const sorted = [...points].sort((a, b) => (maximizeX ? b.x - a.x : a.x - b.x) || (maximizeY ? b.y - a.y : a.y - b.y));
  const onEdge: Place[] = [];
  for (const point of sorted) {
    const last = onEdge[onEdge.length - 1];
    if (last === undefined || better(point.y, last.y)) onEdge.push({x: point.x, y: point.y});
  }
  const corners = onEdge.flatMap((point, i) => (i === 0 ? [point] : [{x: point.x, y: onEdge[i - 1]!.y}, point]));
  return maximizeX ? corners.reverse() : corners;
}

/** By the first objective. JSON has no number for what is infinite or none: that comes last. */
export function bestFirst(front: Front["trials"], maximize: boolean): Front["trials"] {
  const rank = ({values}: Front["trials"][number]) => (maximize ? -1 : 1) * (values[0] ?? (maximize ? -Infinity : Infinity));
  return [...front].sort((a, b) => rank(a) - rank(b) || a.trial - b.trial);
}
