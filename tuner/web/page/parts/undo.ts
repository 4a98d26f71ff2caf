// What is done in a few seconds unless it is taken back, and what was refused meanwhile. A page that is closed before has done nothing.

import {useSyncExternalStore} from "react";

import {visible} from "../format";
import {say, unsay} from "../spoken";

export const UNDO_S = 5;

export interface Pending {
  key: string;
  text: string;
  /** What went wrong; null: it is still to be done. */
  error: string | null;
  /** What was said of it when it came to be so. */
  said: string;
}

let pending: readonly Pending[] = [];
let refusals = 0;
const timers = new Map<string, number>();
const listeners = new Set<() => void>();

function set(next: readonly Pending[]): void {
  pending = next;
  listeners.forEach((listener) => listener());
}

/** Does it after UNDO_S. What is asked for twice is done once. */
export function doUnlessTakenBack(key: string, text: string, run: () => Promise<unknown>): void {
  if (timers.has(key)) return;
  put({key, text, error: null, said: `${text} after ${UNDO_S} s, unless Undo is pressed`});
  timers.set(key, window.setTimeout(() => {
    timers.delete(key);
    run().then(
      () => takeBack(key),
      (error: unknown) => {
        put(refused(key, text, String((error as Error).message)));
      },
    );
  }, UNDO_S * 1000));
}

/** What was asked for in a form that is closed, and refused. */
export function showRefused(text: string, error: string): void {
  put(refused(`refused ${++refusals}`, text, error));
}

const refused = (key: string, text: string, error: string): Pending => ({key, text, error, said: `${text}: ${visible(error)}`});

/** In the place of what has its key, else last. */
function put(entry: Pending): void {
  const known = pending.some((one) => one.key === entry.key);
  set(known ? pending.map((one) => (one.key === entry.key ? entry : one)) : [...pending, entry]);
  say(entry.said);
}

/** Not done, or no longer shown. */
export function takeBack(key: string): void {
  window.clearTimeout(timers.get(key));
  timers.delete(key);
  pending.filter((one) => one.key === key).forEach(({said}) => unsay(said));
  set(pending.filter((one) => one.key !== key));
}

export function usePending(): readonly Pending[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => pending,
  );
}
