// What another policy would have made of the study: it is simulated, and stands beside what was.

import {type FormEvent, useEffect, useId, useState} from "react";

import type {Figures, Role, Simulation, StudyRow} from "../../../contract";
import {count, visible} from "../../../format";
import {Problem} from "../../../parts/problem";
import {SimulatedLanes} from "../../../plot/lanes";
import {AnswerError, ask, send} from "../../../store";
import {useQuery} from "../../../url";
import {mayAct} from "../trial_actions";
import {FIGURES} from "./figures";

const POLICIES = ["promise_goodput", "fixed", "pollux", "sia", "optimus", "tiresias", "hypersched", "fluid", "scaling_efficiency",
                  "top_job", "utility_cost"];
const LOOK_MS = 500;

interface WhatIfTabProps {
  row: StudyRow;
  role: Role;
  policy: string;
}

export function WhatIfTab({row, role, policy}: WhatIfTabProps) {
  const [id, setId] = useQuery("sim", "");
  const {simulation, error} = useSimulation(id, row.name);
  const running = simulation?.state === "running";
  return (
    <>
      <section className="panel" aria-label="Another policy">
        <header className="panel-head"><h2>What if another policy had divided the slots?</h2></header>
        <p className="muted">
          The study is simulated with the curves that its trials had: as it was, under {visible(policy)}, and under the policy below. It
          takes a minute at the most, in a process of its own.
        </p>
        {mayAct(role)
          ? <Ask study={row.name} usual={policy === "fixed" ? "promise_goodput" : "fixed"} busy={running} onStarted={(started) => setId(String(started))} />
          : <p>Who may submit studies can run it; you may see what others have run, at the address that they share.</p>}
        <p role="status" className="muted">{running ? `Simulation ${simulation.id} runs …` : ""}</p>
        {error !== null && <Problem error={error} what="The simulation" />}
        {simulation?.state === "failed" && (
          <p role="alert" className="problem">Simulation {simulation.id} failed: <bdi>{visible(simulation.error ?? "")}</bdi></p>
        )}
      </section>
      {simulation?.state === "done" && simulation.runs.length === 2 && <Outcome simulation={simulation} />}
    </>
  );
}

/** Asks for it until it is over. */
function useSimulation(id: string, study: string): {simulation: Simulation | null; error: AnswerError | null} {
  const [told, setTold] = useState<{simulation: Simulation | null; error: AnswerError | null}>({simulation: null, error: null});
  useEffect(() => {
    setTold({simulation: null, error: null});
    if (!/^\d+$/.test(id)) return undefined;
    let left = false;
    let timer: number | undefined;
    const look = () => {
      ask<Simulation>(`/api/simulations/${id}`).then((simulation) => {
        if (left) return;
        const other = simulation.study === study ? null
          : new AnswerError(`simulation ${id} is one of study "${simulation.study}"`, 404, "not_found");
        setTold({simulation: other === null ? simulation : null, error: other});
        if (simulation.state === "running" && other === null) timer = window.setTimeout(look, LOOK_MS);
      }, (error: unknown) => {
        if (!left) setTold({simulation: null, error: error instanceof AnswerError ? error : new AnswerError(String(error), 0, "internal")});
      });
    };
    look();
    return () => {
      left = true;
      window.clearTimeout(timer);
    };
  }, [id, study]);
  return told;
}

function Ask({study, usual, busy, onStarted}: {study: string; usual: string; busy: boolean; onStarted: (id: number) => void}) {
  const [policy, setPolicy] = useState(usual);
  const [pruner, setPruner] = useState("");
  const [slots, setSlots] = useState("");
  const [sent, setSent] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const list = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setSent(true);
    setRefused(null);
    const body = {policy: policy.trim(), ...(pruner.trim() ? {pruner: pruner.trim()} : {}), ...(slots.trim() ? {slots: Number(slots)} : {})};
    try {
      onStarted((await send<{id: number}>(`/api/studies/${encodeURIComponent(study)}/simulations`, body)).id);
    } catch (error) {
      setRefused(error instanceof AnswerError ? error.message : String(error));
    }
    setSent(false);
  };
  return (
    <form className="what-if" onSubmit={submit}>
      <label>policy <input type="text" value={policy} list={list} size={22} required onChange={(event) => setPolicy(event.target.value)} /></label>
      <datalist id={list}>{POLICIES.map((name) => <option key={name} value={name} />)}</datalist>
      <label>pruner <input type="text" value={pruner} size={14} placeholder="the study's" onChange={(event) => setPruner(event.target.value)} /></label>
      <label>slots <input type="number" value={slots} min={1} max={4096} placeholder="the pool's" onChange={(event) => setSlots(event.target.value)} /></label>
      <button type="submit" className="primary" disabled={busy || sent}>Run</button>
      {refused !== null && <p role="alert" className="problem"><bdi>{visible(refused)}</bdi></p>}
    </form>
  );
}

function Outcome({simulation}: {simulation: Simulation}) {
  const [own, other] = simulation.runs as [Simulation["runs"][0], Simulation["runs"][0]];
  const to = Math.max(own.lanes.to, other.lanes.to);
  const nameOf = (run: Simulation["runs"][0]) => visible(run.policy) + (run.pruner === own.pruner ? "" : `, ${visible(run.pruner)}`);
  const shown = FIGURES.filter(([key]) => [simulation.recorded, own.figures, other.figures].some((all) => (all?.[key] ?? null) !== null));
  const cell = (all: Figures | null, key: string, text: (value: number | null) => string) => {
    const value = all?.[key];
    return value === undefined || value === null ? "–" : text(value);
  };
  return (
    <>
      <section className="panel" aria-label="Figures">
        <header className="panel-head"><h2>Side by side, on {count(simulation.slots)} slots</h2></header>
        <div className="table-frame" tabIndex={0} role="region" aria-label="Figures, as a table">
          <table className="what-if-figures">
            <thead>
              <tr>
                <th scope="col">figure</th>
                <th scope="col" className="number">recorded</th>
                <th scope="col" className="number">as it was<br /><bdi className="of">{nameOf(own)}</bdi></th>
                <th scope="col" className="number">with<br /><bdi className="of">{nameOf(other)}</bdi></th>
              </tr>
            </thead>
            <tbody>
              {shown.map(([key, label, text]) => (
                <tr key={key}>
                  <th scope="row">{label}</th>
                  <td className="number">{cell(simulation.recorded, key, text)}</td>
                  <td className="number">{cell(own.figures, key, text)}</td>
                  <td className="number">{cell(other.figures, key, text)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <h3>Before you believe it</h3>
        <ul className="caveats">{simulation.caveats.map((text) => <li key={text}>{visible(text)}</li>)}</ul>
      </section>
      <section className="panel" aria-label="Slots, simulated">
        <header className="panel-head"><h2>As it was</h2><span className="muted"><bdi>{nameOf(own)}</bdi></span></header>
        <SimulatedLanes label={`Slots as it was, under ${nameOf(own)}`} lanes={own.lanes} to={to} />
        <header className="panel-head"><h2>With <bdi>{nameOf(other)}</bdi></h2></header>
        <SimulatedLanes label={`Slots under ${nameOf(other)}`} lanes={other.lanes} to={to} />
      </section>
    </>
  );
}
