import type {AnswerError} from "../store";

/** What could not be read, in the service's own words. */
export function Problem({error, what}: {error: AnswerError; what: string}) {
  return (
    <p role="alert" className="problem">
      {what} could not be read: {error.message}
    </p>
  );
}
