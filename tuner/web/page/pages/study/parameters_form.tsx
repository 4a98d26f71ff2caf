// A form for a trial's parameters: a field for each of the study's space, or an object of JSON where it has none.

import {type FormEvent, type ReactNode, useEffect, useId, useRef, useState} from "react";

import type {Parameter, Study} from "../../contract";
import {visible} from "../../format";
import {Dialog} from "../../parts/dialog";
import {Name} from "../../parts/name";
import {showRefused} from "../../parts/undo";
import {say} from "../../spoken";
import type {AnswerError} from "../../store";
import {type Given, choiceText, isNone, noneOf, objectGiven, wanted} from "./enqueue_fields";

interface ParametersFormProps {
  study: Study;
  title: ReactNode;
  /** What is said above the fields. */
  children: ReactNode;
  /** What the fields hold at first, by the parameter's name; the others are empty. */
  before?: ReadonlyMap<string, string>;
  /** What the fields give, or what is wrong with it. */
  given: (texts: ReadonlyMap<string, string>) => Given;
  isChanged?: (of: Parameter, text: string) => boolean;
  /** Sends what is given. */
  submit: (parameters: Record<string, unknown>) => Promise<{number?: number}>;
  /** After that: what is said of the trial of this number. */
  said: (number: number) => string;
  /** And what is done, where the form is still open. */
  onDone?: (number: number) => void;
  /** What has not come about where it is refused. */
  notDone: string;
  yes: string;
  onClose: () => void;
}

const NOTHING: ReadonlyMap<string, string> = new Map();

/** Who closes it while the service is asked stays where they are, and is told what came of it. */
export function ParametersForm(props: ParametersFormProps) {
  const {study, before = NOTHING, isChanged, onClose} = props;
  const [texts, setTexts] = useState(before);
  const [object, setObject] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const open = useIsOpen();
  const free = study.parameters.length === 0;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const given = free ? objectGiven(object) : props.given(texts);
    setWrong(given.wrong);
    if (given.parameters === null) return;
    setBusy(true);
    try {
      const {number = 0} = await props.submit(given.parameters);
      say(props.said(number));
      if (!open.current) return;
      onClose();
      props.onDone?.(number);
    } catch (refused) {
      const {message} = refused as AnswerError;
      if (!open.current) {
        showRefused(props.notDone, message);
        return;
      }
      setWrong(message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={onClose}>
      <form className="enqueue" onSubmit={(event) => void submit(event)}>
        <p>{props.children}</p>
        {free
          ? <Free text={object} onText={setObject} />
          : study.parameters.map((of, place) => {
            const text = texts.get(of.name) ?? noneOf(of);
            return <Field key={of.name} of={of} first={place === 0} text={text} changed={isChanged?.(of, text) ?? false}
                          onText={(next) => setTexts(new Map(texts).set(of.name, next))} />;
          })}
        {wrong !== null && <p role="alert" className="problem"><bdi>{visible(wrong)}</bdi></p>}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" className="primary" disabled={busy}>{props.yes}</button>
        </div>
      </form>
    </Dialog>
  );
}

function useIsOpen(): {readonly current: boolean} {
  const open = useRef(true);
  useEffect(() => {
    open.current = true;
    return () => {
      open.current = false;
    };
  }, []);
  return open;
}

interface FieldProps {
  of: Parameter;
  first: boolean;
  text: string;
  /** Differs from what the trial has that it was filled from. */
  changed: boolean;
  onText: (text: string) => void;
}

function Field({of, first, text, changed, onText}: FieldProps) {
  const id = useId();
  const told = [...(of.kind === "choice" ? [] : [`${wanted(of)}${of.log ? ", logarithmic" : ""}`]), ...(changed ? ["changed"] : [])];
  const toldBy = told.length > 0 ? `${id}-wanted` : undefined;
  return (
    <div className="enqueue-field">
      <label htmlFor={id}><Name of={of.name} most={40} /></label>
      {of.kind === "choice" ? (
        <select id={id} autoFocus={first} value={text} aria-describedby={toldBy} onChange={(event) => onText(event.target.value)}>
          <option value={noneOf(of)}>–</option>
          {!isNone(of, text) && !of.choices.includes(text) && <option value={text}>{choiceText(text)}</option>}
          {of.choices.map((choice) => <option key={choice} value={choice}>{choiceText(choice)}</option>)}
        </select>
      ) : (
        <input id={id} type="text" inputMode="decimal" autoComplete="off" autoFocus={first} value={text} size={12}
               aria-describedby={toldBy} onChange={(event) => onText(event.target.value)} />
      )}
      {toldBy !== undefined && <span id={toldBy} className="muted small">{told.join("; ")}</span>}
    </div>
  );
}

function Free({text, onText}: {text: string; onText: (text: string) => void}) {
  return (
    <label className="enqueue-free">
      Parameters, as an object of JSON
      <textarea rows={4} spellCheck={false} autoFocus value={text} placeholder={'{"lr": 0.001}'}
                onChange={(event) => onText(event.target.value)} />
    </label>
  );
}
