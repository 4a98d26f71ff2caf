// Keys. Each place that has some registers them while it is shown; `?` lists them all. Single keys can be turned off.

import {useLayoutEffect, useSyncExternalStore} from "react";

export interface Key {
  /** As KeyboardEvent.key has it; two in a row with a space between: "g p". */
  key: string;
  does: string;
  run: () => void;
}

const OFF = "espalier-keys-off";
const SEQUENCE_MS = 1500;
const registered = new Set<readonly Key[]>();
const listeners = new Set<() => void>();
let shown: readonly Key[] = [];
let first: {key: string; at: number} | null = null;

export function keysAreOn(): boolean {
  try {
    return localStorage.getItem(OFF) === null;
  } catch {
    return true;
  }
}

export function turnKeys(on: boolean): void {
  try {
    if (on) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  } catch {
    // Storage is forbidden here: they stay as they are.
  }
  changed();
}

function changed(): void {
  shown = [...registered].flat();
  for (const listener of listeners) listener();
}

/** They are there as soon as what they belong to is shown. */
export function useKeys(keys: readonly Key[]): void {
  useLayoutEffect(() => {
    registered.add(keys);
    changed();
    return () => {
      registered.delete(keys);
      changed();
    };
  }, [keys]);
}

export function useAllKeys(): readonly Key[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}

/** Into a field that is shown: one of a dialog that was just closed has the focus a moment longer. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.getClientRects().length > 0 &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (!keysAreOn() || document.querySelector("dialog[open]")) return;
    const now = Date.now();
    const pair = first && now - first.at < SEQUENCE_MS ? `${first.key} ${event.key}` : null;
    // The latest registered wins: what lies on top.
    const all = [...shown].reverse();
    const hit = (pair !== null && all.find((key) => key.key === pair)) || all.find((key) => key.key === event.key);
    first = null;
    if (hit) {
      event.preventDefault();
      hit.run();
    } else if (all.some((key) => key.key.startsWith(event.key + " "))) {
      first = {key: event.key, at: now};
    }
  });
}
