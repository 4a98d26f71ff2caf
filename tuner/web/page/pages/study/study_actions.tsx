// Stops a study or takes it up again, and gives it a trial of one's own.

import {type FormEvent, useState} from "react";

import type {Study, StudyRow} from "../../contract";
import {Dialog, Question} from "../../parts/dialog";
import {Name} from "../../parts/name";
import {send} from "../../store";
import {Enqueue, takesTrials} from "./enqueue";
import {useNewestKeys} from "./newest_keys";

function addressOfStudy(name: string, verb: string): string {
  return `/api/studies/${encodeURIComponent(name)}/${verb}`;
}

/** Sends, and keeps what was refused. */
function useSending(onDone: () => void) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = (path: string, body: unknown) => {
    setBusy(true);
    send(path, body).then(onDone, (refused: Error) => {
      setBusy(false);
      setError(refused.message);
    });
  };
  return {busy, error, run};
}

export function StudyActions({study, row}: {study: Study; row: StudyRow}) {
  const [asked, setAsked] = useState<"stop" | "resume" | "enqueue" | null>(null);
  const close = () => setAsked(null);
  const takes = takesTrials(row);
  useNewestKeys(takes ? [{key: "n", does: "enqueue a trial with parameters of your own", run: () => setAsked("enqueue")}] : []);
  return (
    <>
      {takes && <button type="button" onClick={() => setAsked("enqueue")}>Enqueue…</button>}
      {row.state === "running" ? (
        <button type="button" onClick={() => setAsked("stop")}>Stop</button>
      ) : (
        <button type="button" onClick={() => setAsked("resume")}>Resume</button>
      )}
      {asked === "stop" && <Stop study={row} onClose={close} />}
      {asked === "resume" && <Resume study={row} onClose={close} />}
      {asked === "enqueue" && <Enqueue study={study} row={row} onClose={close} />}
    </>
  );
}

function Stop({study, onClose}: {study: StudyRow; onClose: () => void}) {
  const {busy, error, run} = useSending(onClose);
  return (
    <Question title={<>Stop <Name of={study.name} />?</>} yes="Stop the study" busy={busy} error={error} onClose={onClose}
              onYes={() => run(addressOfStudy(study.name, "stop"), {})}>
      <p>No new trials are started until it is resumed.</p>
    </Question>
  );
}

function Resume({study, onClose}: {study: StudyRow; onClose: () => void}) {
  const {busy, error, run} = useSending(onClose);
  const [trials, setTrials] = useState("");
  const valid = trials === "" || /^[1-9]\d*$/.test(trials);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (valid) run(addressOfStudy(study.name, "resume"), trials === "" ? {} : {max_trials: Number(trials)});
  };
  return (
    <Dialog title={<>Resume <Name of={study.name} /></>} onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <label>
            Trials in all{" "}
            <input type="text" autoFocus value={trials} size={8} inputMode="numeric"
                   placeholder={study.total === null ? "any" : String(study.total)} aria-invalid={!valid}
                   onChange={(event) => setTrials(event.target.value)} />
          </label>
        </p>
        {!valid && <p className="problem" role="alert">Write a whole number, or nothing to leave it as it is.</p>}
        {error !== null && <p className="problem" role="alert">{error}</p>}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>Leave it as it is</button>
          <button type="submit" className="primary" disabled={busy || !valid}>Resume the study</button>
        </div>
      </form>
    </Dialog>
  );
}
