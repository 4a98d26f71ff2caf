// A trial with parameters of one's own: for the client that asks next, or, in a study that draws nothing, for the pool.

import {type FormEvent, useState} from "react";

import type {Study, StudyRow} from "../../contract";
import {Dialog} from "../../parts/dialog";
import {Name} from "../../parts/name";
import {visible} from "../../format";
import {say} from "../../spoken";
import {type AnswerError, send} from "../../store";
import {noneOf, objectGiven, parametersGiven} from "./enqueue_fields";
import {Field, Free} from "./parameter_fields";

/** Whether the service takes trials that somebody has made up: a study that draws for the pool does not. */
export function takesTrials(row: StudyRow): boolean {
  return row.kind !== "pool" && row.state === "running";
}

export function Enqueue({study, row, onClose}: {study: Study; row: StudyRow; onClose: () => void}) {
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const [object, setObject] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const free = study.parameters.length === 0;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const given = free ? objectGiven(object) : parametersGiven(study, texts);
    setWrong(given.wrong);
    if (given.parameters === null) return;
    setBusy(true);
    try {
      const trial = await send<{number?: number}>(`/api/studies/${encodeURIComponent(study.name)}/enqueue`,
                                                  {parameters: given.parameters});
      say(`Trial ${trial.number ?? 0} waits`);
      onClose();
    } catch (refused) {
      setWrong((refused as AnswerError).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={<>Enqueue a trial of <Name of={study.name} most={40} /></>} onClose={onClose}>
      <form className="enqueue" onSubmit={(event) => void submit(event)}>
        <p>{row.kind === "queue" ? "The pool runs it when slots are free."
          : "The client that asks next gets it. What is left empty is drawn then."}</p>
        {free
          ? <Free text={object} onText={setObject} />
          : study.parameters.map((of, place) => (
            <Field key={of.name} of={of} first={place === 0} text={texts.get(of.name) ?? noneOf(of)}
                   onText={(text) => setTexts(new Map(texts).set(of.name, text))} />
          ))}
        {wrong !== null && <p role="alert" className="problem"><bdi>{visible(wrong)}</bdi></p>}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" className="primary" disabled={busy}>Enqueue</button>
        </div>
      </form>
    </Dialog>
  );
}
