// Which rows of a long table are drawn, by which elements, and where it stays when rows come in above. Pure.

export const ROW = 28;
const BEYOND = 8;

export interface Window {
  from: number;
  to: number;
}

export function rowsWindow(scrollTop: number, height: number, count: number): Window {
  const from = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
  const to = Math.min(count, Math.ceil((scrollTop + height) / ROW) + BEYOND);
  return {from: Math.min(from, to), to};
}

/** Where to scroll so that row `index` can be seen whole below the head. */
export function scrolledTo(index: number, scrollTop: number, height: number): number {
  const top = index * ROW;
  if (top < scrollTop) return top;
  return top + ROW > scrollTop + height ? top + ROW - height : scrollTop;
}

/** Where to scroll so that what was first in sight stays where it was: at the very top the newest come into sight. */
export function anchored(scrollTop: number, before: number, after: number): number {
  return scrollTop === 0 || after < 0 ? scrollTop : Math.max(0, scrollTop + (after - before) * ROW);
}

/**
 * Which of a table's elements shows which trial, by its id: who stays keeps its own, and who comes takes that of one who has gone, which is
 * cheaper than a new one. That of `focused` is nobody else's: a key that is pressed there would be meant for the one who has gone.
 */
export function elementsOf(ids: readonly number[], before: ReadonlyMap<number, number>, focused: number | null): Map<number, number> {
  const stay = new Set(ids);
  const free: number[] = [];
  let next = 0;
  for (const [id, element] of before) {
    next = Math.max(next, element + 1);
    if (!stay.has(id) && id !== focused) free.push(element);
  }
  free.reverse();
  return new Map(ids.map((id) => [id, before.get(id) ?? free.pop() ?? next++]));
}
