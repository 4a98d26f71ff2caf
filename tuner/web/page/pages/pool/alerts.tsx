import {useState} from "react";

import type {Alert} from "../../contract";
import {ago, count, shortened, visible} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {addressOf} from "../../url";

const SHOWN = 3;
const LONGEST = 220;

/** The newest of what failed or needs somebody. */
export function Alerts({alerts, now}: {alerts: readonly Alert[]; now: number}) {
  const [all, setAll] = useState(false);
  if (!alerts.length) return null;
  const newest = [...alerts].sort((a, b) => Number(b.at === null) - Number(a.at === null) || (b.at ?? 0) - (a.at ?? 0));
  const shown = all ? newest : newest.slice(0, SHOWN);
  return (
    <section aria-label="What needs you" className="alerts">
      <ul>
        {shown.map((alert, at) => (
          <li key={`${alert.at} ${at}`} className={alert.level === "error" ? "is-error" : "is-warning"}>
            <span className={alert.level === "error" ? "bad" : "warn"} aria-hidden="true">{alert.level === "error" ? "✖" : "▲"}</span>
            <span className="alert-text">
              <span className="unseen">{alert.level}: </span>
              <What alert={alert} /> {alert.at !== null && <span className="muted">{ago(alert.at, now)}</span>}
            </span>
          </li>
        ))}
      </ul>
      {newest.length > SHOWN && (
        <button type="button" className="plain" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Fewer" : `All ${count(newest.length)}`}
        </button>
      )}
    </section>
  );
}

function What({alert}: {alert: Alert}) {
  const text = shortened(visible(alert.text), LONGEST);
  if (alert.trial === null || alert.study_id === null) {
    return alert.study_id === null
      ? <span>{text}</span>
      : <span><Link to={addressOf.study(alert.study_id)}><Name of={alert.study ?? ""} most={40} /></Link>: {text}</span>;
  }
  return (
    <span>
      <Link to={addressOf.trial(alert.study_id, alert.trial)}>trial {alert.trial} of <Name of={alert.study ?? ""} most={40} /></Link>: {text}
    </span>
  );
}
