// The study from which another one learns.

import type {LikeStudy, StudyRow} from "../../contract";
import {count} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {addressOf} from "../../url";

/** Of the studies that the service has, the other one is a link. */
export function Like({like, studies}: {like: LikeStudy; studies: readonly StudyRow[]}) {
  const other = studies.find((one) => one.name === like.study);
  const name = <Name of={like.study} most={60} />;
  const outside = like.ended - like.within;
  return (
    <p className="muted like">
      Its sampler learns from {count(like.trials)} of the {count(like.ended)} ended trials of {other === undefined ? name
        : <Link to={addressOf.study(other.id)}>{name}</Link>}{outside > 0 && `; ${count(outside)} lie outside the search space`}.
    </p>
  );
}
