// A trial that goes on from a running one's newest checkpoint with other parameters.

import {type FormEvent, useEffect, useRef, useState} from "react";

import type {Study} from "../../contract";
import {visible} from "../../format";
import {Dialog} from "../../parts/dialog";
import {say} from "../../spoken";
import {type AnswerError, send} from "../../store";
import {changesGiven, fieldText, isChanged, noneOf, objectGiven} from "./enqueue_fields";
import {Field, Free} from "./parameter_fields";

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
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(before);
  const [object, setObject] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  // Who closes it while the service is asked wants to stay where they are, and still hears what came of it.
  const open = useRef(true);
  useEffect(() => {
    open.current = true;
    return () => {
      open.current = false;
    };
  }, []);
  const free = study.parameters.length === 0;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const given = free ? objectGiven(object) : changesGiven(study, before, texts);
    setWrong(given.wrong);
    if (given.parameters === null) return;
    setBusy(true);
    try {
      const clone = await send<{number: number}>(`/api/trials/${trial.id}/clone`, {parameters: given.parameters});
      say(`Trial ${clone.number} is a clone of trial ${trial.number}`);
      if (!open.current) return;
      onClose();
      onCloned(clone.number);
    } catch (refused) {
      const {message} = refused as AnswerError;
      if (!open.current) {
        say(`Trial ${trial.number} was not cloned: ${visible(message)}`);
        return;
      }
      setWrong(message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Clone trial ${trial.number}`} onClose={onClose}>
      <form className="enqueue" onSubmit={(event) => void submit(event)}>
        <p>
          A trial of its own that begins with a copy of the newest checkpoint of trial {trial.number}, which goes on as it is. What you
          change here is set; the rest is as it is there.
        </p>
        {free
          ? <Free text={object} onText={setObject} />
          : study.parameters.map((of, place) => {
            const text = texts.get(of.name) ?? noneOf(of);
            return <Field key={of.name} of={of} first={place === 0} text={text} changed={isChanged(of, before.get(of.name), text)}
                          onText={(next) => setTexts(new Map(texts).set(of.name, next))} />;
          })}
        {wrong !== null && <p role="alert" className="problem"><bdi>{visible(wrong)}</bdi></p>}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" className="primary" disabled={busy}>Clone</button>
        </div>
      </form>
    </Dialog>
  );
}
