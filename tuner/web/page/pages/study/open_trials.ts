const OPEN_STATES = new Set(["waiting", "running", "paused"]);

/** Whether a trial in this state has not ended. */
export function isOpen(state: string): boolean {
  return OPEN_STATES.has(state);
}
