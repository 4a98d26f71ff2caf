import type {TrialsStore} from "../../table/trials_store";

/** A trial's parameters as an object; those that it has not are left out. */
export function parametersOf(trials: TrialsStore, row: number | undefined): Record<string, number | string> {
  const parameters: Record<string, number | string> = {};
  if (row === undefined) return parameters;
  for (const name of trials.names()) {
    if (!name.startsWith("p:")) continue;
    const value = trials.cell(name, row);
    if (value !== null) parameters[name.slice(2)] = value;
  }
  return parameters;
}
