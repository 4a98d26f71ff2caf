// What can be done to one trial.

import {type FormEvent, useState} from "react";

import type {Role} from "../../contract";
import {Dialog} from "../../parts/dialog";
import {doUnlessTakenBack} from "../../parts/undo";
import {send} from "../../store";
import {isOpen} from "./open_trials";

export interface ActedOn {
  id: number;
  number: number;
  state: string;
  slots: number;
  pinned: number | null;
}

export function mayAct(role: Role): boolean {
  return role !== "view";
}

export function cancelTrial(trial: {id: number; number: number}): void {
  doUnlessTakenBack(`cancel ${trial.id}`, `Trial ${trial.number} is cancelled`,
                    () => send(`/api/trials/${trial.id}/cancel`, {state: "pruned", reason: "cancelled on the page"}));
}

interface TrialActionsProps {
  trial: ActedOn;
  /** Slots of the pool: more cannot be pinned. */
  most: number;
  onOpen?: (() => void) | undefined;
  onCopy: () => void;
  onClone: () => void;
  onClose: () => void;
}

/** The dialog of a trial: pin, cancel, copy, clone. For trials that the pool runs. */
export function TrialActions({trial, most, onOpen, onCopy, onClone, onClose}: TrialActionsProps) {
  const [error, setError] = useState<string | null>(null);
  const pin = (slots: number) => {
    send(`/api/trials/${trial.id}/pin`, {slots}).then(onClose, (refused: Error) => setError(refused.message));
  };
  const cancel = () => {
    cancelTrial(trial);
    onClose();
  };
  return (
    <Dialog title={`Trial ${trial.number}`} onClose={onClose}>
      {isOpen(trial.state) && <Pin trial={trial} most={most} onPin={pin} />}
      {error !== null && <p role="alert" className="problem">{error}</p>}
      <div className="dialog-buttons">
        {onOpen !== undefined && <button type="button" onClick={onOpen}>Open</button>}
        <button type="button" onClick={onCopy}>Copy parameters</button>
        {isOpen(trial.state) && <button type="button" onClick={onClone}>Clone…</button>}
        {isOpen(trial.state) && <button type="button" className="danger" onClick={cancel}>Cancel trial</button>}
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

const SIZES = [1, 2, 4, 8, 16, 32, 64];

function Pin({trial, most, onPin}: {trial: ActedOn; most: number; onPin: (slots: number) => void}) {
  const [typed, setTyped] = useState("");
  const slots = Number(typed);
  const valid = /^\d+$/.test(typed) && slots >= 1 && slots <= most;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (valid) onPin(slots);
  };
  return (
    <form className="pin" onSubmit={submit}>
      <p>{trial.pinned === null ? `The allocator decides; it has ${trial.slots} slots.` : `Pinned at ${trial.pinned} slots.`}</p>
      <label>
        Pin at <input type="text" autoFocus value={typed} size={4} inputMode="numeric" aria-invalid={typed !== "" && !valid}
                      onChange={(event) => setTyped(event.target.value)} /> slots
      </label>
      <button type="submit" disabled={!valid}>Pin</button>
      <span className="sizes">
        {SIZES.filter((size) => size <= most).map((size) => (
          <button type="button" key={size} aria-label={`Pin at ${size} slots`} onClick={() => onPin(size)}>{size}</button>
        ))}
        {trial.pinned !== null && <button type="button" onClick={() => onPin(0)}>Unpin</button>}
      </span>
      {typed !== "" && !valid && <p className="problem" role="alert">The pool has {most} slots: write a number from 1 to {most}.</p>}
    </form>
  );
}
