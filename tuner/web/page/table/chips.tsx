// The conditions of a table as chips: each can be seen, changed and taken off.

import {type FormEvent, useId, useState} from "react";

import {visible} from "../format";
import {type Condition, formatBound, formatCondition, parseCondition} from "./conditions";
import type {TrialsStore} from "./trials_store";

interface ChipsProps {
  conditions: readonly Condition[];
  /** What an address says that is no condition. */
  errors: readonly string[];
  onConditions: (conditions: Condition[]) => void;
  trials: TrialsStore;
  columns: readonly string[];
  labelOf: (column: string) => string;
}

export function Chips(props: ChipsProps) {
  const {conditions, onConditions} = props;
  /** Which one is being changed; -1: a new one. */
  const [edited, setEdited] = useState<number | null>(null);
  const without = (index: number) => conditions.filter((_, i) => i !== index);
  const apply = (condition: Condition) => {
    if (edited === null) return;
    const next = [...conditions];
    next.splice(edited < 0 ? next.length : edited, edited < 0 ? 0 : 1, condition);
    onConditions(next);
    setEdited(null);
  };
  return (
    <div className="chips" role="group" aria-label="Filters">
      {conditions.map((condition, i) => {
        const text = visible(formatCondition(condition));
        return (
          <span className="chip" key={`${i} ${text}`}>
            <button type="button" onClick={() => setEdited(i)} title="Change this filter"><bdi>{text}</bdi></button>
            <button type="button" aria-label={`Take off the filter ${text}`} onClick={() => onConditions(without(i))}>✕</button>
          </span>
        );
      })}
      {edited === null && <button type="button" className="add" onClick={() => setEdited(-1)}>+ filter</button>}
      {conditions.length > 1 && <button type="button" onClick={() => onConditions([])}>Take all off</button>}
      {edited !== null && (
        <Editor {...props} from={conditions[edited] ?? null} onApply={apply} onClose={() => setEdited(null)} />
      )}
      {props.errors.map((error) => <p className="problem" role="status" key={error}>{visible(error)}</p>)}
    </div>
  );
}

interface EditorProps extends ChipsProps {
  from: Condition | null;
  onApply: (condition: Condition) => void;
  onClose: () => void;
}

/** One condition: as fields that suit the column, or as its text. */
function Editor({from, trials, columns, labelOf, onApply, onClose}: EditorProps) {
  const [column, setColumn] = useState(from?.column ?? "state");
  const [low, setLow] = useState(from?.kind === "range" ? formatBound(from.low) : "");
  const [high, setHigh] = useState(from?.kind === "range" ? formatBound(from.high) : "");
  const [words, setWords] = useState<(string | null)[]>(from?.kind === "words" ? from.words : []);
  const [text, setText] = useState(from?.kind === "contains" ? from.text : "");
  const [error, setError] = useState<string | null>(null);
  const id = useId();
  const numeric = trials.kindOf(column) === "number";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const typed = conditionOf(column, numeric, low, high, words, text);
    if ("error" in typed) setError(typed.error);
    else onApply(typed.condition);
  };
  return (
    <form className="chip-editor" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <label>
        column{" "}
        <select value={column} autoFocus onChange={(event) => setColumn(event.target.value)}>
          {columns.map((name) => <option key={name} value={name}>{visible(labelOf(name))}</option>)}
        </select>
      </label>
      {numeric ? (
        <>
          <Bound name="from" value={low} onValue={setLow} />
          <Bound name="to" value={high} onValue={setHigh} />
        </>
      ) : (
        <>
          <WordChoice words={trials.wordsOf(column)} chosen={words} onChosen={setWords} />
          <label>or holds <input type="text" value={text} size={14} onChange={(event) => setText(event.target.value)} /></label>
        </>
      )}
      <button type="submit" className="primary">Apply</button>
      <button type="button" onClick={onClose}>Leave</button>
      {error !== null && <p className="problem" role="alert" id={id}>{visible(error)}</p>}
    </form>
  );
}

function Bound({name, value, onValue}: {name: string; value: string; onValue: (value: string) => void}) {
  return (
    <label>
      {name}{" "}
      <input type="text" value={value} size={8} inputMode="decimal" onChange={(event) => onValue(event.target.value)} />
    </label>
  );
}

function conditionOf(column: string, numeric: boolean, low: string, high: string, words: (string | null)[],
                     text: string) {
  if (numeric) return parseCondition(`${JSON.stringify(column)} ${low.trim()}..${high.trim()}`);
  if (text.trim() !== "") return {condition: {kind: "contains" as const, column, text: text.trim()}};
  if (words.length > 0) return {condition: {kind: "words" as const, column, words}};
  return {error: `choose a word of ${column}, or write a text that it holds`};
}

const MOST_WORDS = 24;

function WordChoice({words, chosen, onChosen}: {words: readonly string[]; chosen: readonly (string | null)[];
                                                onChosen: (words: (string | null)[]) => void}) {
  const shown: (string | null)[] = [...words.slice(0, MOST_WORDS), null];
  const toggle = (word: string | null) =>
    onChosen(chosen.includes(word) ? chosen.filter((other) => other !== word) : [...chosen, word]);
  return (
    <fieldset>
      <legend className="unseen">one of</legend>
      {shown.map((word) => (
        <label key={word ?? "\u0000"}>
          <input type="checkbox" checked={chosen.includes(word)} onChange={() => toggle(word)} />{" "}
          {word === null ? <i>none</i> : <bdi>{visible(word).slice(0, 40)}</bdi>}
        </label>
      ))}
      {words.length > MOST_WORDS && <span className="muted">and {words.length - MOST_WORDS} more: write what it holds</span>}
    </fieldset>
  );
}
