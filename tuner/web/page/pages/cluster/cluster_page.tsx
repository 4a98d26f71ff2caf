// The machines: what each is, who holds its slots, and emptying one before maintenance.

import {useEffect, useRef, useState} from "react";

import type {Overview, PoolNode, StudyRow} from "../../contract";
import {count, duration, money, time, visible} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {useNow} from "../../parts/now";
import {Problem} from "../../parts/problem";
import {Tile} from "../../parts/tile";
import {useOverview} from "../../store";
import {addressOf, useQueryText} from "../../url";
import {DrainQuestion, UndoDrain} from "./drain";

export function ClusterPage() {
  const {data, error} = useOverview();
  return (
    <>
      <h1>Cluster</h1>
      {error && !data && <Problem error={error} what="The cluster" />}
      {data && <Nodes overview={data} />}
    </>
  );
}

function Nodes({overview}: {overview: Overview}) {
  const {pool} = overview;
  const types = [...new Set(pool.nodes.map((node) => node.gpu_type))].sort();
  const up = pool.nodes.filter((node) => node.up);
  const price = up.some((node) => node.price_per_hour !== null)
    ? up.reduce((sum, node) => sum + (node.price_per_hour ?? 0), 0) : null;
  return (
    <>
      <div className="tiles">
        <Tile value={`${count(up.length)} of ${count(pool.nodes.length)}`} name="nodes up" />
        <Tile value={`${count(pool.held)} of ${count(pool.slots)}`} name="slots held" />
        {pool.policy !== null && <Tile value={pool.policy} name="policy" />}
        {price !== null && <Tile value={money(price)} name="an hour, all that is up" />}
        {pool.waiting_slots > 0 && <Tile value={count(pool.waiting_slots)} name="slots that clients wait for" />}
      </div>
      {pool.nodes.length === 0 && (
        <p className="empty panel">
          No machine has joined this pool yet. On each that is to train: <code>tuner agent --join HOST:PORT</code>
        </p>
      )}
      {pool.nodes.length > 0 && <NodesTable overview={overview} types={types} />}
    </>
  );
}

/** One table, a group of rows for each type of GPU. */
function NodesTable({overview, types}: {overview: Overview; types: readonly string[]}) {
  const [asked, setAsked] = useState<PoolNode | null>(null);
  const now = useNow();
  const chosen = useQueryText("node");
  const {nodes} = overview.pool;
  const priced = nodes.some((node) => node.price_per_hour !== null);
  const may = overview.role === "administer";
  return (
    <section className="panel" aria-label="Nodes">
      <div className="table-frame" tabIndex={0} role="region" aria-label="Nodes by type">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th><th scope="col">State</th><th scope="col" className="number">Slots held</th>
              <th scope="col">Held by</th>{priced && <th scope="col" className="number">Price an hour</th>}
              {may && <th scope="col"><span className="unseen">What to do</span></th>}
            </tr>
          </thead>
          {types.map((type) => {
            const ofType = nodes.filter((node) => node.gpu_type === type);
            const held = ofType.reduce((sum, node) => sum + node.held, 0);
            const slots = ofType.reduce((sum, node) => sum + node.slots, 0);
            return (
              <tbody key={type}>
                <tr className="group">
                  <th scope="rowgroup" colSpan={4 + Number(priced) + Number(may)}>
                    <b>{type ? visible(type) : "without a GPU"}</b> <span className="muted">{count(held)} of {count(slots)} slots held</span>
                  </th>
                </tr>
                {ofType.map((node) => (
                  <NodeRow key={node.id} node={node} studies={overview.studies} now={now} priced={priced} may={may}
                           chosen={node.name === chosen} onDrain={() => setAsked(node)} />
                ))}
              </tbody>
            );
          })}
        </table>
      </div>
      {asked && <DrainQuestion node={asked} onClose={() => setAsked(null)} />}
    </section>
  );
}

function NodeRow({node, studies, now, priced, may, chosen, onDrain}: {
  node: PoolNode;
  studies: readonly StudyRow[];
  now: number;
  priced: boolean;
  may: boolean;
  chosen: boolean;
  onDrain: () => void;
}) {
  const ref = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (chosen) ref.current?.scrollIntoView({block: "center"});
  }, [chosen]);
  return (
    <tr ref={ref} className={chosen ? "chosen" : undefined}>
      <th scope="row"><Name of={node.name} most={40} />{node.spot && <span className="muted"> spot</span>}</th>
      <td>
        <NodeState node={node} now={now} />
        {node.warnings.map((warning) => <div key={warning} className="warn notice">{visible(warning)}</div>)}
      </td>
      <td className="number">{count(node.held)} of {count(node.slots)}</td>
      <td><Holders node={node} studies={studies} /></td>
      {priced && <td className="number">{money(node.price_per_hour)}</td>}
      {may && (
        <td className="actions">
          {node.draining ? <UndoDrain node={node} /> : node.up && <button type="button" onClick={onDrain}>Drain…</button>}
        </td>
      )}
    </tr>
  );
}

function NodeState({node, now}: {node: PoolNode; now: number}) {
  if (!node.up) return <span className="bad"><span aria-hidden="true">✖</span> down</span>;
  if (!node.draining) return <span className="good"><span aria-hidden="true">●</span> up</span>;
  const left = node.drain_until === null ? null : node.drain_until - now;
  return (
    <span className="warn">
      <span aria-hidden="true">▲</span> {left === null ? "draining" : left > 0 ? `draining, goes in ${duration(left)}`
        : `drained since ${time(node.drain_until, now)}`}
    </span>
  );
}

/** Trials and the slots that each holds here. */
function Holders({node, studies}: {node: PoolNode; studies: readonly StudyRow[]}) {
  const byTrial = new Map<number, {trial: number | null; study_id: number | null; pinned: number | null; slots: number}>();
  for (const use of node.slot_use) {
    const one = byTrial.get(use.trial_id) ?? {trial: use.trial, study_id: use.study_id, pinned: use.pinned, slots: 0};
    byTrial.set(use.trial_id, {...one, slots: one.slots + 1});
  }
  if (!byTrial.size) return <span className="muted">nobody</span>;
  return (
    <ul className="holders">
      {[...byTrial].map(([id, one]) => (
        <li key={id}>
          {one.trial === null || one.study_id === null ? "a trial that is gone" : (
            <Link to={addressOf.trial(one.study_id, one.trial)}>
              trial {one.trial} of <Name of={studies.find((study) => study.id === one.study_id)?.name ?? "?"} most={28} />
            </Link>
          )}
          {one.slots > 1 && <span className="muted"> × {one.slots}</span>}
          {one.pinned !== null && <span className="pinned"> pinned at {one.pinned} {one.pinned === 1 ? "slot" : "slots"}</span>}
        </li>
      ))}
    </ul>
  );
}
