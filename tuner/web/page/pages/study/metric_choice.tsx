// Which of several metrics a picture shows. It stands in the address.

import type {Study} from "../../contract";
import {visible} from "../../format";
import {useQuery} from "../../url";

export interface ChosenMetric {
  /** From 0. */
  objective: number;
  name: string;
  maximize: boolean;
  /** null: there is one. */
  choice: React.ReactNode;
}

/** The number of a study's metric that a text names; 0 where there is none. */
export function objectiveOf(text: string, metrics: number): number {
  return /^\d+$/.test(text) && Number(text) < metrics ? Number(text) : 0;
}

export function useMetric(study: Pick<Study, "metric" | "metrics" | "directions"> | null): ChosenMetric {
  const [text, setText] = useQuery("metric", "0");
  const metrics = study?.metrics ?? [];
  const objective = objectiveOf(text, metrics.length);
  const choice = metrics.length < 2 ? null : (
    <label className="tool">
      metric{" "}
      <select value={objective} onChange={(event) => setText(event.target.value)}>
        {metrics.map((name, place) => <option key={name} value={place}>{visible(name).slice(0, 60)}</option>)}
      </select>
    </label>
  );
  return {objective, choice, name: study === null ? "value" : study.metrics[objective] ?? study.metric ?? "value",
          maximize: (study === null ? "minimize" : study.directions[objective]) === "maximize"};
}
