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
  set([...pending.filter((one) => one.key !== key), {key, text, error: null}]);
  say(announced(text));
  timers.set(key, window.setTimeout(() => {
    timers.delete(key);
    run().then(
      () => takeBack(key),
      (error: unknown) => {
        const {message} = error as Error;
        set(pending.map((one) => (one.key === key ? {...one, error: String(message)} : one)));
        say(refusal(text, String(message)));
      },
    );
  }, UNDO_S * 1000));
}

/** What was asked for in a form that is closed, and refused. */
export function showRefused(text: string, error: string): void {
  set([...pending, {key: `refused ${++refusals}`, text, error}]);
  say(refusal(text, error));
}

const announced = (text: string) => `${text} after ${UNDO_S} s, unless Undo is pressed`;
const refusal = (text: string, error: string) => `${text}: ${visible(error)}`;

/** Not done, or no longer shown. */
export function takeBack(key: string): void {
  window.clearTimeout(timers.get(key));
  timers.delete(key);
  for (const {text, error} of pending.filter((one) => one.key === key)) unsay(error === null ? announced(text) : refusal(text, error));
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
