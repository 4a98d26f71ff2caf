// Emptying a node: a plain question, and the way back.

import {useState} from "react";

import type {PoolNode} from "../../contract";
import {count} from "../../format";
import {Question} from "../../parts/dialog";
import {Name} from "../../parts/name";
import {say} from "../../spoken";
import {AnswerError, send} from "../../store";

const USUAL_MINUTES = 10;

function drain(node: PoolNode, body: {within_s: number} | {undo: true}): Promise<unknown> {
  return send(`/api/nodes/${encodeURIComponent(node.name)}/drain`, body);
}

export function DrainQuestion({node, onClose}: {node: PoolNode; onClose: () => void}) {
  const [minutes, setMinutes] = useState(String(USUAL_MINUTES));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const trials = new Set(node.slot_use.map((use) => use.trial_id)).size;
  const drainIt = async () => {
    const value = Number(minutes);
    if (!minutes.trim() || !(value >= 0)) {
      setError(`Minutes: want a number of at least 0, got "${minutes}"`);
      return;
    }
    setBusy(true);
    try {
      await drain(node, {within_s: value * 60});
      say(`${node.name} is draining`);
      onClose();
    } catch (failed) {
      setError(failed instanceof AnswerError ? failed.message : String(failed));
      setBusy(false);
    }
  };
  return (
    <Question title={<>Empty <Name of={node.name} most={40} />?</>} yes="Drain" busy={busy} error={error}
              onYes={() => void drainIt()} onClose={onClose}>
      <p>
        {trials === 0 ? "No trial runs there." : trials === 1 ? "One trial moves to other slots."
          : `${count(trials)} trials move to other slots.`}{" "}
        Nothing new starts on this node until it is taken back. What is still there when the time is over is shrunk or
        paused.
      </p>
      <label className="field">
        It is to be empty in
        <input type="number" min="0" step="any" value={minutes} onChange={(event) => setMinutes(event.target.value)} />
        minutes
      </label>
    </Question>
  );
}

export function UndoDrain({node}: {node: PoolNode}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const undo = async () => {
    setBusy(true);
    setError(null);
    try {
      await drain(node, {undo: true});
      say(`${node.name} takes trials again`);
    } catch (failed) {
      setError(failed instanceof AnswerError ? failed.message : String(failed));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={busy} onClick={() => void undo()}>Take it back</button>
      {error && <p role="alert" className="problem">{error}</p>}
    </>
  );
}
