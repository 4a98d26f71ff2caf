// A trial with parameters of one's own: for the client that asks next, or, in a study that draws nothing, for the pool.

import type {Study, StudyRow} from "../../contract";
import {Name} from "../../parts/name";
import {send} from "../../store";
import {parametersGiven} from "./enqueue_fields";
import {ParametersForm} from "./parameters_form";

/** Whether the service takes trials that somebody has made up: a study that draws for the pool does not. */
export function takesTrials(row: StudyRow): boolean {
  return row.kind !== "pool" && row.state === "running";
}

export function Enqueue({study, row, onClose}: {study: Study; row: StudyRow; onClose: () => void}) {
  return (
    <ParametersForm study={study} title={<>Enqueue a trial of <Name of={study.name} most={40} /></>}
                    given={(texts) => parametersGiven(study, texts)}
                    submit={(given) => send(`/api/studies/${encodeURIComponent(study.name)}/enqueue`, {parameters: given})}
                    said={(number) => `Trial ${number} waits`} notDone="The trial was not enqueued" yes="Enqueue" onClose={onClose}>
      {row.kind === "queue" ? "The pool runs it when slots are free." : "The client that asks next gets it. What is left empty is drawn then."}
    </ParametersForm>
  );
}
