// How the figures of a simulation are called and shown.

import {count, duration, number, percent} from "../../../format";

export const FIGURES: readonly (readonly [string, string, (value: number | null) => string])[] = [
  ["finish_s", "finished after", duration],
  ["best", "best value", (value) => number(value, 5)],
  ["slot_seconds", "slot-seconds held", (value) => count(value === null ? null : Math.round(value))],
  ["slot_use", "of the pool's slots held", percent],
  ["resizes", "resizes", count],
  ["pauses", "pauses", count],
  ["complete", "trials complete", count],
  ["pruned", "trials pruned", count],
  ["unfinished", "trials unfinished", count],
];
