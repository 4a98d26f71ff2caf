// Which rows of a long table are drawn, and where it stays when rows come in above. Pure.

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
