// The address is the view: which page, and all that was chosen on it. Nothing of a view is kept elsewhere.

import {useSyncExternalStore} from "react";

import {at, base} from "./base";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
let place: Place = read();

function read(): Place {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname;
  return {path, query: new URLSearchParams(location.search)};
}

function changed(): void {
  place = read();
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", changed);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, () => place);
}

/** Another page. */
export function go(address: string): void {
  if (at(address) === location.pathname + location.search) return;
  history.pushState(null, "", at(address));
  changed();
  window.scrollTo(0, 0);
}

/** Changes some of the query: null takes a key away. What a gesture changes many times a second replaces the entry. */
export function setQuery(changes: Record<string, string | null>, how: "push" | "replace" = "replace"): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  const address = location.pathname + (text ? "?" + text : "");
  if (address === location.pathname + location.search) return;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  changed();
}

/** One text of the query, and how to set it; its usual value is not written into the address. */
export function useQuery(key: string, usual: string, how: "push" | "replace" = "replace"):
    [string, (value: string) => void] {
  const {query} = usePlace();
  return [query.get(key) ?? usual, (value) => setQuery({[key]: value === usual ? null : value}, how)];
}

/** A range of numbers in the query, "from..to": what a picture is zoomed to. */
export function useRange(key: string): [[number, number] | null, (range: [number, number] | null) => void] {
  const {query} = usePlace();
  return [parseRange(query.get(key)), (range) => setQuery({[key]: range && `${round(range[0])}..${round(range[1])}`})];
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
