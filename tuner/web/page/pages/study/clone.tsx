// A trial that goes on from a running one's newest checkpoint with other parameters.

import {useState} from "react";

import type {Study} from "../../contract";
import {send} from "../../store";
import {changesGiven, fieldText, isChanged} from "./enqueue_fields";
import {ParametersForm} from "./parameters_form";

interface CloneProps {
  study: Study;
  trial: {id: number; number: number};
  /** The trial's, as they are now. */
  parameters: Readonly<Record<string, unknown>>;
  /** With the number of the clone. */
  onCloned: (number: number) => void;
  onClose: () => void;
}

/** Whether it may be cloned is the service's to say: it alone knows of checkpoints. */
export function Clone({study, trial, parameters, onCloned, onClose}: CloneProps) {
  const [before] = useState(() => {
    const own = new Map(Object.entries(parameters));
    return new Map(study.parameters.map((of) => [of.name, fieldText(of, own.get(of.name))]));
  });
  return (
    <ParametersForm study={study} title={`Clone trial ${trial.number}`} before={before} given={(texts) => changesGiven(study, before, texts)}
                    isChanged={(of, text) => isChanged(of, before.get(of.name), text)}
                    submit={(given) => send(`/api/trials/${trial.id}/clone`, {parameters: given})}
                    said={(number) => `Trial ${number} is a clone of trial ${trial.number}`} onDone={onCloned}
                    notDone={`Trial ${trial.number} was not cloned`} yes="Clone" onClose={onClose}>
      A trial of its own that begins with a copy of the newest checkpoint of trial {trial.number}, which goes on as it is. What you
      change here is set; the rest is as it is there.
    </ParametersForm>
  );
}
