// The trials of a study on this page: read in slices, newest first, and from then on only what has changed.

import {useEffect, useRef, useState} from "react";

import type {Changed, TrialColumns} from "../contract";
import {AnswerError, ask, store, useFigures} from "../store";
import {TrialsStore} from "./trials_store";

const FIRST_ROWS = 500;
const ROWS = 10_000;
/** What changed is asked for at most so often. */
const PAUSE_MS = 500;

export interface Trials {
  store: TrialsStore;
  /** Grows with each change of the rows. */
  version: number;
  /** So many there are; fewer may have been read so far. */
  total: number | null;
  error: AnswerError | null;
}

/** Reads one study until it is stopped. */
export class TrialsReader {
  readonly trials = new TrialsStore();
  total: number | null = null;
  error: AnswerError | null = null;
  private revision = 0;
  private incarnation = "";
  private whole = false;
  private stopped = false;
  private running = false;
  private again = false;
  private timer: number | undefined;

  constructor(private readonly study: number, private readonly tell: () => void) {}

  start(): () => void {
    const leave = store.subscribeChanges((event) => this.hear(event));
    void this.run();
    return () => {
      this.stopped = true;
      window.clearTimeout(this.timer);
      leave();
    };
  }

  private hear(event: Changed | null): void {
    if (event !== null && !event.studies.includes(this.study)) return;
    if (this.running || this.timer !== undefined) {
      this.again = true;
      return;
    }
    void this.run();
  }

  private async run(): Promise<void> {
    this.running = true;
    this.again = false;
    try {
      if (this.whole) await this.readChanges();
      else await this.readAll();
      this.error = null;
    } catch (error) {
      this.error = error instanceof AnswerError ? error : new AnswerError(String(error), 0, "internal");
      this.again ||= this.error.status === 0 || this.error.status >= 500;
    }
    this.running = false;
    if (this.stopped) return;
    this.tell();
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      if (this.again) void this.run();
    }, this.error === null ? PAUSE_MS : 4 * PAUSE_MS);
  }

  /** What changes between two slices has a revision beyond that of the first. */
  private async readAll(): Promise<void> {
    let from = 0;
    let first: TrialColumns | null = null;
    for (;;) {
      const answer = await this.slice(`from=${from}&rows=${from === 0 ? FIRST_ROWS : ROWS}`);
      first ??= answer;
      from += answer.rows;
      this.total = answer.total;
      if (this.stopped) return;
      this.trials.merge(answer);
      if (answer.rows === 0 || from >= answer.total) break;
      this.tell();
    }
    this.revision = first.revision;
    this.incarnation = first.incarnation;
    this.whole = true;
  }

  private async readChanges(): Promise<void> {
    const answer = await this.slice(`changed_since=${this.revision}`);
    if (answer.complete === false || answer.revision < this.revision || answer.incarnation !== this.incarnation) {
      this.whole = false;
      await this.readAll();
      return;
    }
    this.trials.merge(answer);
    this.total = answer.total;
    this.revision = answer.revision;
  }

  private slice(query: string): Promise<TrialColumns> {
    return ask<TrialColumns>(`/api/view/studies/${this.study}/trials?${query}`);
  }
}

export function useTrials(study: number): Trials {
  const [version, setVersion] = useState(0);
  const reader = useRef<TrialsReader | null>(null);
  if (reader.current === null) reader.current = new TrialsReader(study, () => setVersion((count) => count + 1));
  const current = reader.current;
  useEffect(() => current.start(), [current]);
  const figures = useFigures();
  useEffect(() => {
    if (figures === null) return;
    const before = current.trials.version;
    const {now: _, ...columns} = figures;
    current.trials.mergeLive(columns);
    if (current.trials.version !== before) setVersion((count) => count + 1);
  }, [figures, current]);
  return {store: current.trials, version, total: current.total, error: current.error};
}
