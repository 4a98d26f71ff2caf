// What is typed into the form of a queued trial, as parameters of the study's space. Pure.

import type {Parameter, Study} from "../../contract";
import {number, visible} from "../../format";

/** No choice: of choices, "" may be one. */
const NO_CHOICE = "\0";

/** What the form's field holds of a parameter that is not given. */
export function noneOf(of: Parameter): string {
  return of.kind === "choice" ? NO_CHOICE : "";
}

export function isNone(of: Parameter, text: string): boolean {
  return of.kind === "choice" ? text === NO_CHOICE : text.trim() === "";
}

/** A choice as the form names it: one of which nothing would be seen stands in quotes. */
export function choiceText(choice: string): string {
  return choice.trim() === "" ? JSON.stringify(choice) : visible(choice);
}

/** How the form shows a value of the trial. */
export function fieldText(of: Parameter, value: unknown): string {
  if (value === undefined || value === null) return noneOf(of);
  const text = textOf(value);
  return of.kind === "choice" ? choiceLike(of.choices, text) ?? text : text;
}

/** Whether a clone gets a value of its own: what was emptied stays as its parent has it, and 0.10 is 0.1. */
export function isChanged(of: Parameter, before: string | undefined, text: string): boolean {
  return !isNone(of, text) && text !== before && (of.kind === "choice" || !sameText(text, before ?? ""));
}

/** What a clone has of its own: what was changed in its form. */
export function changesGiven(study: Study, before: ReadonlyMap<string, string>, texts: ReadonlyMap<string, string>): Given {
  const changed = new Map<string, string>();
  for (const of of study.parameters) {
    const text = texts.get(of.name) ?? noneOf(of);
    if (isChanged(of, before.get(of.name), text)) changed.set(of.name, text);
  }
  if (changed.size === 0) return {parameters: null, wrong: "A clone has at least one parameter of its own: change one."};
  return parametersGiven(study, changed);
}

export type Given = {parameters: Record<string, unknown>; wrong: null} | {parameters: null; wrong: string};

/** Those that are not empty. Whether they are all that is needed is the service's to say. */
export function parametersGiven(study: Study, texts: ReadonlyMap<string, string>): Given {
  const parameters: Record<string, unknown> = Object.create(null);
  for (const of of study.parameters) {
    const text = texts.get(of.name) ?? noneOf(of);
    if (isNone(of, text)) continue;
    if (of.kind === "choice") {
      parameters[of.name] = optionOf(study, of.name, text);
      continue;
    }
    const value = Number(text);
    if (!fits(of, value)) return {parameters: null, wrong: `${visible(of.name)}: want ${wanted(of)}, got "${visible(text.trim())}"`};
    parameters[of.name] = value;
  }
  return {parameters: {...parameters}, wrong: null};
}

/** Where there is no space: any object. */
export function objectGiven(text: string): Given {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() || "{}");
  } catch (error) {
    return {parameters: null, wrong: `Parameters: want an object of JSON, such as {"lr": 0.1}: ${(error as Error).message}`};
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {parameters: null, wrong: `Parameters: want an object of JSON, such as {"lr": 0.1}, got ${visible(text.trim()).slice(0, 60)}`};
  }
  return {parameters: value as Record<string, unknown>, wrong: null};
}

function fits(of: Parameter, value: number): boolean {
  return Number.isFinite(value) && value >= (of.low ?? -Infinity) && value <= (of.high ?? Infinity) &&
    (of.kind !== "int" || Number.isInteger(value));
}

/** "a whole number from 1 to 8". */
export function wanted(of: Parameter): string {
  const ends = of.low !== null && of.high !== null ? ` from ${end(of.low)} to ${end(of.high)}`
    : of.low !== null ? ` of at least ${end(of.low)}` : of.high !== null ? ` of at most ${end(of.high)}` : "";
  return (of.kind === "int" ? "a whole number" : "a number") + ends;
}

/** With all its digits where it has few: a bound that is rounded would be refused. */
function end(value: number): string {
  return String(value).length <= 8 ? String(value) : number(value, 6);
}

/** A choice is shown as a text; what it is stands in the study's file. */
function optionOf(study: Study, name: string, text: string): unknown {
  const options = own(specificationOf(own(study.definition, "search_space"), name), "_value");
  if (!Array.isArray(options)) return text;
  const texts = options.map(textOf);
  const found: unknown = options[texts.indexOf(choiceLike(texts, text) ?? text)];
  return found === undefined || typeof found === "object" ? text : found;
}

/** The one of exactly that text comes before one of the same number: "1.1" and "1.10" may both be choices. */
function choiceLike(choices: readonly string[], text: string): string | undefined {
  return choices.find((choice) => choice === text) ?? choices.find((choice) => sameText(choice, text));
}

/** By a flat name: "n/A/p" is the parameter "p" of the option "A" of the choice "n". Each of the three may have a "/" of its own. */
function specificationOf(parameters: unknown, name: string): unknown {
  const found = own(parameters, name);
  if (found !== undefined || typeof parameters !== "object" || parameters === null) return found;
  for (const [choice, specification] of Object.entries(parameters)) {
    const options = own(specification, "_value");
    if (!name.startsWith(`${choice}/`) || !Array.isArray(options)) continue;
    for (const option of options as unknown[]) {
      const prefix = `${choice}/${String(own(option, "_name"))}/`;
      const inner = name.startsWith(prefix) ? specificationOf(option, name.slice(prefix.length)) : undefined;
      if (inner !== undefined) return inner;
    }
  }
  return undefined;
}

function own(of: unknown, key: string): unknown {
  return typeof of === "object" && of !== null && Object.prototype.hasOwnProperty.call(of, key) ? (of as Record<string, unknown>)[key] : undefined;
}

/** Numbers are written in several ways: 1e-05, 0.00001. */
function sameText(one: string, other: string): boolean {
  return one === other || (one.trim() !== "" && other.trim() !== "" && Number(one) === Number(other));
}

function textOf(option: unknown): string {
  return typeof option === "string" ? option : JSON.stringify(option) ?? "";
}
