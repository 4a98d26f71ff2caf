// The address is the view: which page, and all that was chosen on it. Nothing of a view is kept elsewhere.

import {useMemo, useSyncExternalStore} from "react";

import {at, base} from "./base";
import {record} from "./record/record";

interface Place {
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
/** Where a record begins: it has no pool. */
const HOME = record === null ? "/" : `/ui/studies/${record.study.id}`;
/** Of a record: the part of its address after the `#`, and in a frame that has no address of its own what it would be. */
let part = location.hash.slice(1);
let place: Place = read();

/** Path and query, as `addressOf` writes them. */
function current(): string {
  if (record !== null) return part.startsWith("/") ? part : HOME;
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname;
  return path + location.search;
}

function read(): Place {
  const [path = "", ...query] = current().split("?");
  return {path: path === "/" ? HOME : path, query: new URLSearchParams(query.join("?"))};
}

function changed(): void {
  place = read();
  for (const listener of listeners) listener();
}

function moved(): void {
  part = location.hash.slice(1);
  changed();
}

window.addEventListener("popstate", moved);

function write(address: string, how: "push" | "replace"): void {
  const target = record === null ? at(address) : location.href.replace(/#.*$/s, "") + at(address);
  try {
    if (how === "push") history.pushState(null, "", target);
    else history.replaceState(null, "", target);
  } catch (error) {
    if (record === null) throw error;
    // A frame of a notebook keeps its view to itself.
  }
  part = address;
  changed();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Each of these tells of what it is about alone: a table's filter draws no picture anew.

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => place.path);
}

/** One text of the query; null: it has none of that name. */
export function useQueryText(key: string): string | null {
  return useSyncExternalStore(subscribe, () => place.query.get(key));
}

/** Another page. */
export function go(address: string): void {
  if (address === current()) return;
  write(address, "push");
  window.scrollTo(0, 0);
}

/** Changes some of the query: null takes a key away. What a gesture changes many times a second replaces the entry. */
export function setQuery(changes: Record<string, string | null>, how: "push" | "replace" = "replace"): void {
  const {path, query: before} = read();
  const query = new URLSearchParams(before);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  const address = path + (text ? "?" + text : "");
  if (address !== current()) write(address, how);
}

/** One text of the query, and how to set it; its usual value is not written into the address. */
export function useQuery(key: string, usual: string, how: "push" | "replace" = "replace"):
    [string, (value: string) => void] {
  return [useQueryText(key) ?? usual, (value) => setQuery({[key]: value === usual ? null : value}, how)];
}

/** A range of numbers in the query, "from..to": what a picture is zoomed to. */
export function useRange(key: string): [[number, number] | null, (range: [number, number] | null) => void] {
  const text = useQueryText(key);
  const range = useMemo(() => parseRange(text), [text]);
  return [range, (to) => setQuery({[key]: to && `${round(to[0])}..${round(to[1])}`})];
}

function parseRange(text: string | null): [number, number] | null {
  const ends = (text ?? "").split("..");
  const from = Number(ends[0]);
  const to = Number(ends[1]);
  return ends.length === 2 && ends[0] !== "" && Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
}

function round(value: number): string {
  return String(Number(value.toPrecision(13)));
}

export const addressOf = {
  pool: () => "/",
  cluster: () => "/ui/cluster",
  study: (id: number, query?: Record<string, string>) => `/ui/studies/${id}` + text(query),
  trial: (study: number, trial: number) => `/ui/studies/${study}/trials/${trial}`,
  compare: (trials: readonly number[]) => `/ui/compare?t=${trials.join(",")}`,
};

function text(query: Record<string, string> | undefined): string {
  return query && Object.keys(query).length ? "?" + new URLSearchParams(query).toString() : "";
}
