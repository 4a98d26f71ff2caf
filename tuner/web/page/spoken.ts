// What a screen reader is told: one polite live region, at most twice a second, the newest wins.

const LEAST_MS = 500;
let region: HTMLElement | null = null;
let waiting: string | null = null;
let timer: number | undefined;

export function setRegion(element: HTMLElement | null): void {
  region = element;
}

export function say(text: string): void {
  waiting = text;
  if (timer !== undefined) return;
  flush();
}

function flush(): void {
  if (waiting !== null && region) {
    region.textContent = waiting;
    waiting = null;
    timer = window.setTimeout(() => {
      timer = undefined;
      flush();
    }, LEAST_MS);
  }
}
