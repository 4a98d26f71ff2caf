// What the page knows: answers of the service by their address, read again when an event says that they changed.

import {useCallback, useEffect, useSyncExternalStore} from "react";

import {at, bundleName} from "./base";
import type {Liveness} from "./connection";
import type {Changed, LiveFigures, Overview, Values} from "./contract";
import {answerOf} from "./record/answers";
import {record} from "./record/record";
import {SharedConnection} from "./shared_connection";

/** What is shown is read again at most so often. */
const REREAD_MS = 500;
/** Answers that nobody shows any more are kept for so many of the newest, for the way back. */
const KEPT = 32;

export class AnswerError extends Error {
  constructor(message: string, readonly status: number, readonly code: string) {
    super(message);
  }
}

/** A session ends, too: then the same view comes again after the login. */
export function toLogin(): void {
  location.assign(at(`/login?to=${encodeURIComponent(location.pathname + location.search)}`));
}

/** One request. What is not a success is an AnswerError with the service's own words. */
export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  if (record !== null) {
    const told = answerOf(record, path);
    if (told === undefined) throw new AnswerError("the record does not hold it", 404, "not_found");
    return told as T;
  }
  let answer: Response;
  try {
    answer = await fetch(at(path), {cache: "no-store", ...init});
  } catch {
    throw new AnswerError("the service does not answer", 0, "unavailable");
  }
  if (answer.status === 401) toLogin();
  const text = await answer.text();
  let body: unknown;
  try {
    body = text ? JSON.parse(text) : {};
  } catch {
    throw new AnswerError(`the service answered ${answer.status} with what is no JSON`, answer.status, "internal");
  }
  if (!answer.ok) {
    const told = body as {error?: unknown; code?: unknown};
    throw new AnswerError(String(told.error ?? `the service answered ${answer.status}`), answer.status, String(told.code ?? ""));
  }
  return body as T;
}

/** A change: what the service's operations take. All that is shown is read again after it. */
export async function send<T = unknown>(path: string, body: unknown = {}, method = "POST"): Promise<T> {
  const answer = await ask<T>(path, {
    // The second is what no other site's page can send.
    method, headers: {"Content-Type": "application/json", "X-Espalier": "1"}, body: JSON.stringify(body),
  });
  store.readAgain(() => true);
  return answer;
}

export interface Read<T> {
  data: T | null;
  /** Of the last try; `data` is then of the last one that went well. */
  error: AnswerError | null;
  loading: boolean;
}

interface Entry {
  path: string;
  matters: (event: Changed) => boolean;
  read: Read<unknown>;
  listeners: Set<() => void>;
  started: number;
  running: boolean;
  stale: boolean;
  timer: number | undefined;
  used: number;
}

const NOTHING_YET: Read<never> = {data: null, error: null, loading: true};

export class Store {
  private readonly entries = new Map<string, Entry>();
  private readonly changeListeners = new Set<(event: Changed | null) => void>();
  private readonly valueListeners = new Set<(values: Values) => void>();
  private readonly liveListeners = new Set<() => void>();
  private readonly livenessListeners = new Set<() => void>();
  private uses = 0;
  liveness: Liveness = record === null ? {is: "connecting"} : {is: "record", at: record.overview.now};
  figures: LiveFigures | null = null;
  /** The service's clock less this machine's, in seconds. */
  ahead = 0;

  readonly connection = new SharedConnection({
    changed: (event) => {
      this.setClock(event.now);
      this.readAgain((entry) => entry.matters(event));
      this.changeListeners.forEach((listener) => listener(event));
    },
    values: (values) => this.valueListeners.forEach((listener) => listener(values)),
    live: (figures) => {
      this.setClock(figures.now);
      this.figures = figures;
      this.liveListeners.forEach((listener) => listener());
    },
    resync: () => this.resync(),
    overview: (overview) => this.put("/api/view/overview", overview),
    liveness: (state) => {
      this.liveness = state;
      if (state.is === "connecting") this.resync();
      this.livenessListeners.forEach((listener) => listener());
    },
    restarted: () => {
      this.resync();
      reloadIfUpgraded();
    },
    loggedOut: toLogin,
  });

  now(): number {
    return record === null ? Date.now() / 1000 + this.ahead : record.overview.now;
  }

  private setClock(now: number): void {
    this.ahead = now - Date.now() / 1000;
  }

  subscribeLiveness = (listener: () => void) => listen(this.livenessListeners, listener);
  subscribeFigures = (listener: () => void) => listen(this.liveListeners, listener);
  /** What has changed; null: anything may have. */
  subscribeChanges = (listener: (event: Changed | null) => void) => listen(this.changeListeners, listener);
  subscribeValues = (listener: (values: Values) => void) => listen(this.valueListeners, listener);

  private resync(): void {
    this.readAgain(() => true);
    this.changeListeners.forEach((listener) => listener(null));
  }

  readAgain(which: (entry: Entry) => boolean): void {
    for (const entry of this.entries.values()) {
      if (!which(entry)) continue;
      entry.stale = true;
      if (entry.listeners.size) this.schedule(entry);
    }
  }

  get(path: string): Read<unknown> {
    return this.entries.get(path)?.read ?? NOTHING_YET;
  }

  watch(path: string, matters: (event: Changed) => boolean, listener: () => void): () => void {
    const entry = this.entryOf(path, matters);
    entry.listeners.add(listener);
    entry.used = ++this.uses;
    if (entry.stale) this.schedule(entry);
    return () => {
      entry.listeners.delete(listener);
      // What is not shown hears of no change.
      if (!entry.listeners.size) entry.stale = true;
      this.forgetOldest();
    };
  }

  setMatters(path: string, matters: (event: Changed) => boolean): void {
    const entry = this.entries.get(path);
    if (entry) entry.matters = matters;
  }

  private entryOf(path: string, matters: (event: Changed) => boolean): Entry {
    let entry = this.entries.get(path);
    if (!entry) {
      entry = {path, matters, read: NOTHING_YET, listeners: new Set(), started: 0, running: false, stale: true,
               timer: undefined, used: 0};
      this.entries.set(path, entry);
    }
    entry.matters = matters;
    return entry;
  }

  private put(path: string, data: unknown): void {
    if (path === "/api/view/overview") this.setClock((data as Overview).now);
    const entry = this.entries.get(path);
    if (entry) this.set(entry, {data, error: null, loading: false});
  }

  private set(entry: Entry, read: Read<unknown>): void {
    entry.read = read;
    entry.listeners.forEach((listener) => listener());
  }

  private schedule(entry: Entry): void {
    if (entry.timer !== undefined || entry.running) return;
    const wait = Math.max(0, entry.started + REREAD_MS - Date.now());
    entry.timer = window.setTimeout(() => {
      entry.timer = undefined;
      void this.load(entry);
    }, wait);
  }

  private async load(entry: Entry): Promise<void> {
    entry.running = true;
    entry.stale = false;
    entry.started = Date.now();
    try {
      const data = await ask<unknown>(entry.path);
      if (entry.path === "/api/view/overview") this.setClock((data as Overview).now);
      this.set(entry, {data, error: null, loading: false});
    } catch (error) {
      const told = error instanceof AnswerError ? error : new AnswerError(String(error), 0, "internal");
      this.set(entry, {data: entry.read.data, error: told, loading: false});
    } finally {
      entry.running = false;
    }
    if (entry.stale && entry.listeners.size) this.schedule(entry);
  }

  private forgetOldest(): void {
    const unused = [...this.entries.values()].filter((entry) => !entry.listeners.size).sort((a, b) => a.used - b.used);
    for (const entry of unused.slice(0, Math.max(0, unused.length - KEPT))) this.entries.delete(entry.path);
  }
}

/** A service that was upgraded has other pages than this one. */
function reloadIfUpgraded(): void {
  fetch(at("/"), {cache: "no-store"})
    .then((answer) => (answer.ok ? answer.text() : ""))
    .then((page) => {
      if (bundleName && page.includes("ui-assets/app.") && !page.includes(bundleName)) location.reload();
    })
    .catch(() => undefined); // It is asked again when the service has come back again.
}

function listen<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const store = new Store();

const always = () => true;

/** The answer at an address, read again after events that matter to it; null asks for nothing. */
export function useAnswer<T>(path: string | null, matters: (event: Changed) => boolean = always): Read<T> {
  // The newest `matters` holds; that it is another function each time must not subscribe anew.
  useEffect(() => {
    if (path !== null) store.setMatters(path, matters);
  });
  const subscribe = useCallback(
    (listener: () => void) => (path === null ? () => undefined : store.watch(path, matters, listener)),
    [path],
  );
  return useSyncExternalStore(subscribe, () => (path === null ? NOTHING_YET : store.get(path))) as Read<T>;
}

export function useOverview(): Read<Overview> {
  return useAnswer<Overview>("/api/view/overview");
}

export function useLiveness(): Liveness {
  return useSyncExternalStore(store.subscribeLiveness, () => store.liveness);
}

/** Running trials as they are this second; null before the first event, and while there is no stream. */
export function useFigures(): LiveFigures | null {
  return useSyncExternalStore(store.subscribeFigures, () => store.figures);
}

/** Reports as they come in. */
export function useValues(take: (values: Values) => void): void {
  useEffect(() => store.subscribeValues(take), [take]);
}
