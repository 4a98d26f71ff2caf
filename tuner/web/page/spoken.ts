// What a screen reader is told: polite live regions that all have one text, set at most twice a second, the newest wins.

const LEAST_MS = 500;
const regions = new Set<HTMLElement>();
let waiting: string | null = null;
let timer: number | undefined;

/** Returns what takes it away again. */
export function addRegion(region: HTMLElement): () => void {
  regions.add(region);
  return () => void regions.delete(region);
}

export function say(text: string): void {
  waiting = text;
  if (timer !== undefined) return;
  flush();
}

/** What is no longer so is neither said any more nor found by who reads on through the page. */
export function unsay(text: string): void {
  if (waiting === text) waiting = null;
  for (const region of regions) {
    if (region.textContent === text) region.textContent = "";
  }
}

function flush(): void {
  if (waiting !== null && regions.size > 0) {
    for (const region of regions) region.textContent = waiting;
    waiting = null;
    timer = window.setTimeout(() => {
      timer = undefined;
      flush();
    }, LEAST_MS);
  }
}
