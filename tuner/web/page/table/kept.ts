// How many trials keep to what they have to. Pure.

import type {TrialsStore} from "./trials_store";

export interface Kept {
  keep: number;
  breaks: number;
}

/** Of those that have told all of it; null: none has anything to keep. */
export function keptOf(trials: TrialsStore): Kept | null {
  if (trials.kindOf("infeasible") === null) return null;
  const of = (word: string) => trials.filter([{kind: "words", column: "infeasible", words: [word]}]).length;
  return {keep: of("no"), breaks: of("yes")};
}
