// Fields of a form for parameters: one for each of the study's space, or an object of JSON where it has none.

import {useId} from "react";

import type {Parameter} from "../../contract";
import {visible} from "../../format";
import {Name} from "../../parts/name";
import {isNone, noneOf, wanted} from "./enqueue_fields";

interface FieldProps {
  of: Parameter;
  first: boolean;
  text: string;
  /** Differs from what the trial has that it was filled from. */
  changed?: boolean;
  onText: (text: string) => void;
}

export function Field({of, first, text, changed = false, onText}: FieldProps) {
  const id = useId();
  const told = [...(of.kind === "choice" ? [] : [`${wanted(of)}${of.log ? ", logarithmic" : ""}`]), ...(changed ? ["changed"] : [])];
  const toldBy = told.length > 0 ? `${id}-wanted` : undefined;
  return (
    <div className="enqueue-field">
      <label htmlFor={id}><Name of={of.name} most={40} /></label>
      {of.kind === "choice" ? (
        <select id={id} autoFocus={first} value={text} aria-describedby={toldBy} onChange={(event) => onText(event.target.value)}>
          <option value={noneOf(of)}>–</option>
          {!isNone(of, text) && !of.choices.includes(text) && <option value={text}>{visible(text)}</option>}
          {of.choices.map((choice) => <option key={choice} value={choice}>{visible(choice)}</option>)}
        </select>
      ) : (
        <input id={id} type="text" inputMode="decimal" autoComplete="off" autoFocus={first} value={text} size={12}
               aria-describedby={toldBy} onChange={(event) => onText(event.target.value)} />
      )}
      {toldBy !== undefined && <span id={toldBy} className="muted small">{told.join("; ")}</span>}
    </div>
  );
}

export function Free({text, onText}: {text: string; onText: (text: string) => void}) {
  return (
    <label className="enqueue-free">
      Parameters, as an object of JSON
      <textarea rows={4} spellCheck={false} autoFocus value={text} placeholder={'{"lr": 0.001}'}
                onChange={(event) => onText(event.target.value)} />
    </label>
  );
}
