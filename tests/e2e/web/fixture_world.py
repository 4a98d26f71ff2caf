"""A made-up pool with studies, trials and what they did, as the service tells them below /api/view: the same each time
for the same seed. For pages in a browser that need states a real pool takes long to come to."""
import bisect
import math
import random
import time

STATES = ["waiting", "running", "paused", "complete", "pruned", "failed"]
REASONS = {"pruned": "median: 0.61 at step 8 is worse than 0.74", "failed": "rank 0 ended with signal 9 (out of memory)",
           "complete": "", "running": "", "waiting": "", "paused": ""}


class World:
    def __init__(self, trials=40, studies=3, nodes=4, slots=8, seed=5, names=None, now=None, held_s=3600.0):
        self.random = random.Random(seed)
        self.start = (now or time.time()) - held_s
        self.held_s = held_s
        self.revision = 100
        self.incarnation = f"{seed:08x}"
        self.role = "administer"
        self.alerts = []
        self.notes = {}
        self.simulations = []
        # How often a simulation is still under way when it is asked for.
        self.simulation_looks = 1
        self.drained = {}
        # At which revision a trial has changed last, of those that have.
        self.changed_at = {}
        types = ["H200", "H200", "A100", "L40S"]
        self.nodes = [{"id": i + 1, "name": (names or {}).get(f"node{i}", f"n{i + 1}"), "slots": slots, "gpu_type": types[i % 4],
                       "spot": i % 4 == 2, "up": i % 7 != 6, "price_per_hour": 2.5 - i % 4 * 0.5} for i in range(nodes)]
        self.studies, self.trials = [], []
        for number in range(studies):
            self._add_study(number, (names or {}).get(f"study{number}", ["resnet18", "char_lm", "digits"][number % 3] +
                                                      ("" if number < 3 else f"_{number}")),
                            trials if number == 0 else max(1, trials // (number + 1)))
        self._run()

    def _add_study(self, number, name, trials):
        study = {"id": number + 1, "name": name, "direction": "maximize" if number % 2 == 0 else "minimize",
                 "metric": "accuracy" if number % 2 == 0 else "loss", "state": "running" if number < 3 else "complete",
                 "kind": "ask" if number % 3 == 2 else "pool", "total": trials + 10, "trials": []}
        self.studies.append(study)
        for index in range(trials):
            last = study["state"] == "running" and index >= trials - 5
            state = "waiting" if last and index == trials - 1 else "running" if last else self.random.choices(
                ["complete", "pruned", "failed"], [5, 8, 1])[0]
            trial = {"id": len(self.trials) + 1, "number": index, "study": study, "state": state, "spans": [],
                     "parameters": {"lr": 10 ** self.random.uniform(-5, -1), "layers": self.random.randint(1, 8),
                                    "rule": self.random.choice(["linear", "sqrt", "adascale"])},
                     "steps": self.random.randint(12, 40), "level": self.random.uniform(0.4, 0.95)}
            self.trials.append(trial)
            study["trials"].append(trial)

    def _run(self):
        """Hands slots out: each trial that ever ran holds some, for a while, one after the other."""
        free = [(self.start, node, slot) for node in range(len(self.nodes)) for slot in range(self.nodes[node]["slots"])
                if self.nodes[node]["up"]]
        self.decisions = []
        ran = [trial for trial in self.trials if trial["state"] != "waiting"]
        self.random.shuffle(ran)
        ran.sort(key=lambda trial: trial["state"] == "running")
        for trial in ran:
            wide = self.random.choice([1, 1, 1, 2, 4])
            free.sort(key=lambda one: one[0])
            at = free[0][0] if free else self.start
            live = trial["state"] == "running"
            until = None if live else at + self.random.uniform(0.02, 0.3) * self.held_s
            if until is not None and until >= self.start + self.held_s:
                until = self.start + self.held_s * self.random.uniform(0.9, 0.99)
            taken = [one for one in free if one[0] <= at + 0.02 * self.held_s][:wide]
            free = [one for one in free if one not in taken]
            for since, node, slot in taken:
                trial["spans"].append({"from": max(since, at), "to": until, "node": node, "slot": slot})
                if until is not None:
                    free.append((until, node, slot))
            trial["started_at"], trial["ended_at"] = at, until
            self._decide(at, trial, "start", 0, len(taken))
            if wide > 1 and taken:
                self._decide(at + 10, trial, "grow", 1, len(taken))
            if until is not None:
                self._decide(until, trial, {"pruned": "prune", "failed": "fail"}.get(trial["state"], "finish"), len(taken), 0)
        self.decisions.sort(key=lambda decision: -decision["at"])
        for index, decision in enumerate(self.decisions):
            decision["cursor"] = str(len(self.decisions) - index)

    def _decide(self, at, trial, kind, before, after):
        figures = None
        if kind == "grow":
            other = self.random.choice(self.trials)
            figures = {"promise": round(self.random.uniform(0.3, 0.9), 3), "speedup_before": 1.0,
                       "speedup_after": round(1 + 0.4 * after, 2), "gain": round(self.random.uniform(0.1, 1), 3), "resize_cost_s": 0.4,
                       "from": [{"trial_id": other["id"], "trial": other["number"], "study_id": other["study"]["id"],
                                 "slots": after - before, "promise": 0.07}]}
        self.decisions.append({
            "at": at, "study_id": trial["study"]["id"], "study": trial["study"]["name"], "trial_id": trial["id"], "trial": trial["number"],
            "kind": kind, "from_slots": before, "to_slots": after, "figures": figures,
            "reason": REASONS.get(trial["state"]) if kind in ("prune", "fail") else
            f"gains 0.80 weighted on {after} slots, no other gains more" if kind == "grow" else "a slot was free"})

    # What the service answers.

    def now(self):
        return max(time.time(), self.start + self.held_s)

    def answer(self, **values):
        return {"version": 1, "revision": self.revision, "incarnation": self.incarnation, **values}

    def held_now(self):
        return [(span, trial) for trial in self.trials for span in trial["spans"] if span["to"] is None]

    def overview(self):
        held = self.held_now()
        nodes = []
        for index, node in enumerate(self.nodes):
            use = sorted(({"slot": span["slot"], "trial_id": trial["id"], "trial": trial["number"], "study_id": trial["study"]["id"],
                           "pinned": trial.get("pinned")}
                          for span, trial in held if span["node"] == index), key=lambda one: one["slot"])
            until = self.drained.get(node["name"])
            nodes.append({**node, "held": len(use), "draining": until is not None, "drain_until": until,
                          "warnings": [] if node["up"] else ["has not answered for 3:10"], "slot_use": use})
        pool = {"slots": sum(node["slots"] for node in nodes if node["up"]), "held": len(held), "policy": "promise_goodput",
                "waiting_slots": 0, "nodes": nodes}
        return self.answer(now=self.now(), service={"version": "0.1", "http_base": None}, role=self.role,
                           pool=pool, studies=[self._study_row(study, held) for study in self.studies], alerts=self.alerts)

    def _study_row(self, study, held):
        counts = {state: sum(trial["state"] == state for trial in study["trials"]) for state in STATES}
        sign = 1 if study["direction"] == "maximize" else -1
        best = max((trial for trial in study["trials"] if trial["state"] == "complete"), key=lambda t: sign * self.value(t), default=None)
        last = next((d for d in self.decisions if d["study_id"] == study["id"]), None)
        return {"id": study["id"], "name": study["name"], "state": study["state"], "kind": study["kind"], "metric": study["metric"],
                "direction": study["direction"], "directions": [study["direction"]], "trials": counts, "total": study["total"],
                "best": best and {"trial_id": best["id"], "trial": best["number"], "value": self.value(best)},
                "created_at": self.start, "ended_at": None, "elapsed_s": self.held_s, "remaining_s": 4320.0 if study["id"] == 1 else None,
                "slots": sum(trial["study"] is study for _, trial in held), "share": 1.0,
                "slot_seconds": sum((s["to"] or self.now()) - s["from"] for t in study["trials"] for s in t["spans"]),
                "spent": 12.4 if study["id"] == 1 else None,
                "last_decision": last and {key: last[key] for key in ("at", "trial", "kind", "from_slots", "to_slots", "reason")}, "notices": [],
                "kept": None}

    def curve(self, trial):
        """[(step, at, value)] of a trial's reports."""
        if not trial["spans"]:
            return []
        made = random.Random(trial["id"])
        steps = trial["steps"] if trial["state"] in ("complete", "running") else max(1, trial["steps"] // 3)
        start, end = trial["started_at"], trial["ended_at"] or self.start + self.held_s
        points = []
        for step in range(1, steps + 1):
            value = trial["level"] * (1 - math.exp(-step / 8)) + made.gauss(0, 0.01)
            value = value if trial["study"]["direction"] == "maximize" else 2.5 * (1 - value)
            points.append((step, start + (end - start) * step / steps, value))
        return points

    def value(self, trial):
        points = self.curve(trial)
        return points[-1][2] if points else None

    def infeasible(self, trial):
        """Whether it breaks a constraint; None: it has nothing to keep."""
        return None

    def study(self, id):
        study = self.studies[id - 1]
        return self.answer(
            id=id, name=study["name"], state=study["state"], metric=study["metric"], direction=study["direction"], directions=[study["direction"]],
            metrics=[], constraints=[],
            definition={"command": ["python3", "train.py"], "metric": {"name": study["metric"]}, "trials": study["total"]},
            parameters=[{"name": "lr", "kind": "float", "low": 1e-5, "high": 0.1, "log": True, "choices": []},
                        {"name": "layers", "kind": "int", "low": 1, "high": 8, "log": False, "choices": []},
                        {"name": "rule", "kind": "choice", "low": None, "high": None, "log": False, "choices": ["linear", "sqrt", "adascale"]}],
            policy="promise_goodput", sampler="tpe", pruner="median", like=None,
            limits={"trials": study["total"], "time_s": None, "cost": None, "target": None}, created_at=self.start, ended_at=None,
            note=self.notes.get(f"study {id}", ""), reason="",
            attributes={"user": {"team": "vision"}, "system": {}})

    def add_trial(self, study, state="waiting", **parameters):
        """One more trial of the study of this id, which has done nothing yet."""
        study = self.studies[study - 1]
        trial = {"id": len(self.trials) + 1, "number": len(study["trials"]), "study": study, "state": state, "spans": [], "steps": 1,
                 "level": 0.5, "parameters": {"lr": 0.01, "layers": 2, "rule": "sqrt", **parameters}}
        self.trials.append(trial)
        study["trials"].append(trial)
        return trial

    def enqueue(self, name, body):
        """(status, answer): a trial of these parameters waits. A space of several numbers of layers knows no 5."""
        study = next(one for one in self.studies if one["name"] == name)
        if body["parameters"].get("layers") == 5:
            return 400, {"error": "parameter \"layers\": 5 is not in the space", "code": "invalid_argument"}
        trial = self.add_trial(study["id"], **body["parameters"])
        return 200, {"trial_id": trial["id"], "number": trial["number"], "state": "TRIAL_WAITING"}

    def table(self, id, first=0, rows=10000, since=None):
        study = self.studies[id - 1]
        shown = list(reversed(study["trials"]))[first:first + rows]
        if since is not None:
            shown = [trial for trial in shown if self.changed_at.get(trial["id"], 0) > since]
        words = {"state": STATES, "reason": [], "node": [node["name"] for node in self.nodes], "p:rule": ["linear", "sqrt", "adascale"], "u:host": []}

        def reason(text):
            if not text:
                return None
            if text not in words["reason"]:
                words["reason"].append(text)
            return words["reason"].index(text)

        last = {trial["id"]: (self.curve(trial) or [(None, None, None)])[-1] for trial in shown}
        held = {trial["id"]: [span for span in trial["spans"] if span["to"] is None] for trial in shown}
        columns = {
            "id": [t["id"] for t in shown], "number": [t["number"] for t in shown], "state": [STATES.index(t["state"]) for t in shown],
            "value": [last[t["id"]][2] for t in shown], "best_step": [last[t["id"]][0] for t in shown], "step": [last[t["id"]][0] for t in shown],
            "slots": [len(held[t["id"]]) for t in shown], "promise": [t["level"] if t["state"] == "running" else None for t in shown],
            "goodput": [1000 * t["level"] if t["state"] == "running" else None for t in shown], "batch_size": [64 * t["parameters"]["layers"] for t in shown],
            "slot_seconds": [sum((s["to"] or self.now()) - s["from"] for s in t["spans"]) for t in shown],
            "created_at": [self.start for _ in shown], "started_at": [t.get("started_at") for t in shown], "ended_at": [t.get("ended_at") for t in shown],
            "reason": [reason(REASONS[t["state"]]) for t in shown], "resizes": [max(0, len(t["spans"]) - 1) for t in shown], "restarts": [0 for _ in shown],
            "pinned": [t.get("pinned") for t in shown], "node": [t["spans"][0]["node"] if t["spans"] else None for t in shown],
            "p:lr": [t["parameters"]["lr"] for t in shown], "p:layers": [t["parameters"]["layers"] for t in shown],
            "p:rule": [words["p:rule"].index(t["parameters"]["rule"]) for t in shown]}
        if any("parent" in trial for trial in study["trials"]):
            columns["parent"] = [t["parent"][0]["number"] if "parent" in t else None for t in shown]
            columns["parent_step"] = [t["parent"][1] if "parent" in t else None for t in shown]
        return self.answer(**{"from": first}, rows=len(shown), total=len(study["trials"]), columns=columns, words=words)

    def curves(self, id, chosen=None, best=None, x="step", objective=0):
        """Of the second metric: tenfold."""
        study = self.studies[id - 1]
        sign = -1 if study["direction"] == "maximize" else 1
        trials = [self.trials[one - 1] for one in chosen] if chosen is not None else sorted(
            (t for t in study["trials"] if self.value(t) is not None), key=lambda t: sign * self.value(t))[:best or 20]
        told = []
        for trial in trials:
            points = self.curve(trial)
            told.append({"trial_id": trial["id"], "trial": trial["number"], "state": trial["state"], "infeasible": self.infeasible(trial), "points": len(points),
                         "x": [at if x == "time" else float(step) for step, at, _ in points], "y": [10 * value if objective else value for *_, value in points],
                         "promise": [round(trial["level"] * step / 40, 3) for step, *_ in points], "goodput": [900.0 + step for step, *_ in points],
                         "batch_size": [64 * (1 + step // 10) for step, *_ in points]})
        return self.answer(x=x, metric=self.study(id)["metrics"][objective] if objective else study["metric"], curves=told)

    def lanes(self, start=None, end=None, study=None):
        start, end = start if start is not None else self.start, end if end is not None else self.now()
        spans = {key: [] for key in ("node", "slot", "from", "to", "trial_id", "trial", "study", "count")}
        changes = []
        for trial in self.trials:
            for span in trial["spans"]:
                until = span["to"] if span["to"] is not None else self.now()
                changes += [(span["from"], 1), (until + 0.001, -1)]
                if span["from"] > end or until < start or (study and trial["study"]["id"] != study):
                    continue
                for key, value in (("node", span["node"]), ("slot", span["slot"]), ("from", span["from"]), ("to", span["to"]), ("trial_id", trial["id"]),
                                   ("trial", trial["number"]), ("study", trial["study"]["id"] - 1), ("count", 1)):
                    spans[key].append(value)
        changes.sort()
        times, held, level = [], [], 0
        for at, change in changes:
            level += change
            times.append(at)
            held.append(level)
        columns = [start + (end - start) * i / 200 for i in range(201)]
        use = [held[bisect.bisect_right(times, at) - 1] if bisect.bisect_right(times, at) else 0 for at in columns]
        marks = [{"at": d["at"], "kind": d["kind"], "trial_id": d["trial_id"], "trial": d["trial"], "study": d["study_id"] - 1,
                  "node": next((s["node"] for s in self.trials[d["trial_id"] - 1]["spans"]), None), "reason": d["reason"]}
                 for d in reversed(self.decisions) if start <= d["at"] <= end and (not study or d["study_id"] == study)]
        return self.answer(now=self.now(), **{"from": start}, to=end,
                           nodes=[{key: node[key] for key in ("name", "slots", "gpu_type", "up")} for node in self.nodes],
                           spans=spans, studies=[{"id": s["id"], "name": s["name"]} for s in self.studies], marks=marks,
                           use={"at": columns, "held": use, "slots": [sum(n["slots"] for n in self.nodes if n["up"])] * len(columns)})

    def decided(self, study=None, trial=None, kind=None, before=None, limit=200):
        chosen = [d for d in self.decisions if (not study or d["study_id"] == study) and (not trial or d["trial_id"] == trial) and
                  (not kind or d["kind"] == kind) and (before is None or int(d["cursor"]) < int(before))]
        return self.answer(decisions=chosen[:limit], next=chosen[limit - 1]["cursor"] if len(chosen) > limit else None)

    def trial(self, id):
        trial = self.trials[id - 1]
        points = self.curve(trial)
        held = [span for span in trial["spans"] if span["to"] is None]
        live = trial["state"] == "running"
        return self.answer(trial={
            "id": id, "number": trial["number"], "study_id": trial["study"]["id"], "study": trial["study"]["name"], "state": trial["state"],
            "value": self.value(trial), "metrics": [], "values": [self.value(trial)], "infeasible": None, "constraints": [], "reason": REASONS[trial["state"]], "last_output": "epoch 7 done",
            "created_at": self.start, "started_at": trial.get("started_at"), "ended_at": trial.get("ended_at"), "slots": len(held),
            "promise": trial["level"] if live else None, "goodput": 1840.0 if live else None, "batch_size": 256, "throughput": 2100.0 if live else None,
            "learning_rate": trial["parameters"]["lr"], "noise_scale": 310.0, "step": points[-1][0] if points else None,
            "slot_seconds": sum((s["to"] or self.now()) - s["from"] for s in trial["spans"]), "pinned": None, "parameters": trial["parameters"],
            "lineage": self.lineage(trial),
            "user_attributes": {"host": "a"}, "system_attributes": {}, "note": self.notes.get(f"trial {id}", ""),
            "spans": [{"from": s["from"], "to": s["to"], "slots": [{"node": self.nodes[s["node"]]["name"], "slot": s["slot"]}]} for s in trial["spans"]],
            "replicas": [{"node": self.nodes[s["node"]]["name"], "slot": s["slot"], "rank": rank, "pid": 4000 + rank, "slow": 1.8 if rank == 1 else None}
                         for rank, s in enumerate(held)], "ranks": len(held) or None, "log_path": f"/var/log/trial-{id}.log"},
            decisions=[d for d in self.decisions if d["trial_id"] == id][:50],
            clones=[{"trial_id": one["id"], "trial": one["number"], "state": one["state"], "step": one["parent"][1]} for one in trial["study"]["trials"]
                    if one.get("parent", (None,))[0] is trial])

    def lineage(self, trial):
        """Of one that has a parent: (trial, step) and its own parameters."""
        if "parent" not in trial:
            return None
        parent, step = trial["parent"]
        founder = parent
        while "parent" in founder:
            founder = founder["parent"][0]
        differ = [name for name, value in trial["parameters"].items() if parent["parameters"].get(name) != value]
        return {"parent_id": parent["id"], "parent": parent["number"], "founder_id": founder["id"], "founder": founder["number"], "step": step,
                "fingerprint": "9f86d081", "set": {name: trial["parameters"][name] for name in differ},
                "was": {name: parent["parameters"][name] for name in differ}}

    def clone(self, id, body):
        """(status, answer): it waits for its checkpoint. Trials that have not told a value have none."""
        parent = self.trials[id - 1]
        if not self.curve(parent):
            return 400, {"error": f"trial {parent['number']} of study \"{parent['study']['name']}\" has saved no checkpoint yet, with which a "
                                  "clone could begin", "code": "failed_precondition"}
        trial = self.add_trial(parent["study"]["id"], **{**parent["parameters"], **body["parameters"]})
        trial["parent"] = (parent, None)
        return 200, {"trial_id": trial["id"], "number": trial["number"], "state": "TRIAL_WAITING"}

    # What decided, and what another policy would have made of it.

    def analysis(self, id, what):
        study = self.studies[id - 1]
        complete = [trial for trial in study["trials"] if trial["state"] == "complete"]
        parts = [("lr", 0.61), ("layers", 0.3), ("rule", 0.09)] if len(complete) > 1 else []
        answer = {"version": 1, "study_id": id, "what": what, "complete": len(complete)}
        if what == "edf":
            values = sorted(self.value(trial) for trial in complete)
            answer["objectives"] = [{"direction": study["direction"], "value": values,
                                     "share": [(i + 1) / len(values) for i in range(len(values))]}]
        if what == "best":
            answer["objectives"] = [{"direction": study["direction"], **self.improvements(study)}]
        if what == "importance":
            answer["objectives"] = [{"direction": study["direction"],
                                     "parameters": [{"name": name, "importance": part} for name, part in parts]}]
        return answer

    def improvements(self, study):
        """Complete trials that were better than all before them."""
        sign, told = 1 if study["direction"] == "maximize" else -1, {"at": [], "trial_id": [], "value": []}
        for trial in sorted((one for one in study["trials"] if one["state"] == "complete"), key=lambda one: one["ended_at"]):
            value = self.value(trial)
            if not told["value"] or sign * value > sign * told["value"][-1]:
                for key, one in (("at", trial["ended_at"]), ("trial_id", trial["id"]), ("value", value)):
                    told[key].append(one)
        return told

    def simulate(self, study, body):
        """(status, answer): as it was is what the lanes show, and under the other policy it takes half as long again."""
        known = [one for one in self.studies if one["name"] == study]
        if not known:
            return 404, {"error": f"study \"{study}\" is not found", "code": "not_found"}
        if body["policy"].partition(":")[0] not in ("promise_goodput", "fixed", "pollux"):
            return 400, {"error": f"\"policy\": unknown policy \"{body['policy']}\"; known: fixed, pollux, promise_goodput",
                         "code": "invalid_argument"}
        self.simulations.append({"study": known[0], "looks": self.simulation_looks, **body})
        return 202, {"id": len(self.simulations)}

    def simulation(self, id):
        if not id.isdigit() or not 1 <= int(id) <= len(self.simulations):
            return None
        asked = self.simulations[int(id) - 1]
        study = asked["study"]
        answer = {"version": 1, "id": int(id), "study": study["name"], "state": "running", "asked_at": self.now(), "policy": asked["policy"],
                  "slots": 32, "nodes": 4, "error": None, "recorded": None, "runs": [], "caveats": []}
        asked["looks"] -= 1
        if asked["looks"] >= 0:
            return answer
        runs = []
        for policy, slower in (("promise_goodput", 1.0), (asked["policy"], 1.5)):
            lanes = self.lanes(study=study["id"])
            end = lanes["now"]
            for key in ("from", "to"):
                lanes["spans"][key] = [((end if at is None else at) - self.start) * slower for at in lanes["spans"][key]]
            lanes.update({"now": self.held_s * slower, "from": 0, "to": self.held_s * slower, "studies": [{"id": study["id"], "name": study["name"]}],
                          "marks": [{**mark, "at": (mark["at"] - self.start) * slower, "study": 0} for mark in lanes["marks"]]})
            lanes["spans"]["study"] = [0 for _ in lanes["spans"]["study"]]
            lanes["use"]["at"] = [(at - self.start) * slower for at in lanes["use"]["at"]]
            figures = {"finish_s": self.held_s * slower, "best": 0.913, "slot_seconds": 48210.0 * slower, "slot_use": 0.94 / slower, "resizes": 22 / slower,
                       "pauses": 0, "complete": 31, "pruned": 18, "unfinished": 0}
            runs.append({"policy": policy, "pruner": asked.get("pruner", "median"), "slots": 32, "figures": figures, "lanes": lanes})
        return {**answer, "state": "done", "runs": runs, "recorded": {"finish_s": None, "best": 0.9127, "slot_seconds": 47005.5, "resizes": 24,
                "pauses": 0, "complete": 30, "pruned": 18, "unfinished": 1}, "caveats": [
            "Both are simulated with the curves and the speed that the trials had, \"as it was\" too: compare them with one another, and \"as it was\" "
            "with what was recorded.", "3 trials went on past what was recorded, with their last value held."]}


class Constrained(World):
    """Trials of its first study have to keep to 20 ms; every third one with an end does not, nor does the best."""
    BOUND_MS = 20.0
    text = "latency_ms <= 20"

    def latency_ms(self, trial):
        return 5.0 + trial["number"] % 3 * 10

    def infeasible(self, trial):
        if trial["study"]["id"] != 1 or trial["state"] in ("waiting", "failed"):
            return None
        return self.latency_ms(trial) > self.BOUND_MS

    def study(self, id):
        return {**super().study(id), "constraints": [self.text] if id == 1 else []}

    def _study_row(self, study, held):
        row, sign = super()._study_row(study, held), 1 if study["direction"] == "maximize" else -1
        keep = [one for one in study["trials"] if one["state"] == "complete" and not self.infeasible(one)]
        best = max(keep, key=lambda one: sign * self.value(one), default=None)
        told = [self.infeasible(one) for one in study["trials"]]
        return {**row, "best": best and {"trial_id": best["id"], "trial": best["number"], "value": self.value(best)},
                "kept": {"keep": told.count(False), "breaks": told.count(True)} if study["id"] == 1 else None}

    def table(self, id, *arguments, **keys):
        answer = super().table(id, *arguments, **keys)
        if id == 1:
            broken = [self.infeasible(self.trials[one - 1]) for one in answer["columns"]["id"]]
            answer["columns"]["infeasible"] = [None if one is None else int(one) for one in broken]
            answer["words"]["infeasible"] = ["no", "yes"]
        return answer

    def trial(self, id):
        answer, trial = super().trial(id), self.trials[id - 1]
        broken = self.infeasible(trial)
        told = {"infeasible": broken, "constraints": [
            {"text": self.text, "figure": None if broken is None else self.latency_ms(trial), "broken": broken}] if trial["study"]["id"] == 1 else []}
        return {**answer, "trial": {**answer["trial"], **told}}


class Population(World):
    """In its first study every fourth trial is a clone: of one of the four before it, from the midst of that one."""

    def _add_study(self, number, name, trials):
        super()._add_study(number, name, trials)
        if number > 0:
            return
        for trial in self.studies[0]["trials"][4::4]:
            parent = self.studies[0]["trials"][trial["number"] - 1 - trial["number"] // 4 % 4]
            trial["parent"] = (parent, 6 + parent.get("parent", (None, 0))[1])
            trial["parameters"] = {**parent["parameters"], "lr": parent["parameters"]["lr"] * 1.2}

    def curve(self, trial):
        """A clone's begins where its parent's was."""
        points = super().curve(trial)
        after = trial["parent"][1] or 0 if "parent" in trial else 0
        return [(step + after, at, value) for step, at, value in points]


class SeveralObjectives(World):
    """Its first study has two, and none of its trials has a value alone."""

    def study(self, id):
        return {**super().study(id), "directions": ["maximize", "minimize"]}

    def _study_row(self, study, held):
        return {**super()._study_row(study, held), "directions": ["maximize", "minimize"], "best": None}

    def table(self, *arguments, **keys):
        answer = super().table(*arguments, **keys)
        answer["columns"]["values:1"] = [number / 8 for number in answer["columns"]["number"]]
        return answer

    def analysis(self, id, what):
        answer = super().analysis(id, what)
        if what == "pareto":
            answer["trials"] = [{"trial_id": trial["id"], "trial": trial["number"], "values": [self.value(trial), trial["number"] / 8]}
                                for trial in self.front()]
        elif what in ("importance", "edf"):
            answer["objectives"].append({**answer["objectives"][0], "direction": "minimize"})
        return answer

    def front(self):
        """By number, which is the second value: each better in the first than all before it."""
        best = []
        for trial in self.studies[0]["trials"]:
            if trial["state"] == "complete" and not self.infeasible(trial) and (not best or self.value(trial) > self.value(best[-1])):
                best.append(trial)
        return best


class SeveralMetrics(SeveralObjectives, Constrained):
    """Its first study has two metrics, with curves, and something to keep. The longest names are those of what is longest."""
    names = ["accuracy", "latency_ms"]

    def study(self, id):
        return {**super().study(id), "metrics": self.names if id == 1 else [], **({} if id == 1 else {"directions": ["minimize"]})}

    def trial(self, id):
        answer, trial = super().trial(id), self.trials[id - 1]
        if trial["study"]["id"] != 1:
            return answer
        return {**answer, "trial": {**answer["trial"], "metrics": self.names, "values": [self.value(trial), trial["number"] / 8]}}
