import type {DecisionFigures} from "../contract";
import {addressOf} from "../url";
import {Link} from "./link";

/** A trial whose slots a decision took: it may be there no more. */
export function OtherTrial({of}: {of: DecisionFigures["from"][number]}) {
  if (of.study_id === null || of.trial === null) return <>a trial that has been deleted</>;
  return <Link to={addressOf.trial(of.study_id, of.trial)}>trial {of.trial}</Link>;
}
