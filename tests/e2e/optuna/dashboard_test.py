"""optuna-dashboard's REST: our answers beside those of the real dashboard on the same studies."""
import environment

environment.run_inside(__file__)

import csv
import io
import json
import math
import os
import pathlib
import threading
import unittest
import urllib.error
import urllib.request
import warnings
import wsgiref.simple_server

import optuna
import optuna_dashboard
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna.storages import GrpcStorageProxy
from optuna.trial import TrialState, create_trial
from optuna_dashboard import ChoiceWidget, register_objective_form_widgets, save_note, save_plotly_graph_object

from harness import TunerTest, wait_for

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
warnings.filterwarnings("ignore")


def get(base, path, **headers):
    with urllib.request.urlopen(urllib.request.Request(base + path, headers=headers)) as answer:
        return answer.read()


def send(base, method, path, body=None, **headers):
    """Status and JSON of the answer, also where it is an error."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, method=method,
                                     headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, json.loads(text) if text else None


class QuietHandler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


def rich_objective(trial):
    x = trial.suggest_float("x", -3.0, 3.0)
    lr = trial.suggest_float("lr", 1e-6, 1e-1, log=True)
    half = trial.suggest_float("half", 0, 10, step=0.5)
    layers = trial.suggest_int("layers", 1, 8)
    width = trial.suggest_int("width", 16, 1024, log=True)
    rule = trial.suggest_categorical("rule", ["linear", None, True, 2, 3.5, "é"])
    if layers > 4:
        trial.suggest_float("dropout", 0, 0.5)
    trial.suggest_float("moving", 0, trial.number % 3 + 1)
    for step in range(3):
        trial.report(x * x + step if trial.number % 7 else [math.nan, math.inf, -math.inf][step], step)
    trial.set_user_attr("number", trial.number / 3)
    trial.set_user_attr("text", "a,\"b\"\nc")
    trial.set_user_attr("flag", True)
    trial.set_user_attr("mixed", trial.number if trial.number % 2 else "odd")
    trial.set_user_attr("nested", {"a": [1, 2.5, None, "é'"], "b": {}})
    if trial.number % 9 == 8:
        raise optuna.TrialPruned()
    if trial.number % 11 == 10:
        raise RuntimeError("fails")
    return (x - 1) ** 2 + math.log10(lr) ** 2 / 10 + layers / 100 + half / 50 + width / 1e4 + (rule == "linear")


class Dashboard(TunerTest):
    def setUp(self):
        super().setUp()
        self.files = self.dir / "artifacts"
        self.files.mkdir()
        self.base = "http://127.0.0.1:0"
        service = self.serve(self.dir / "optuna.db", options=self.dashboard_options())
        self.base = f"http://{self.told_address(service, 'dashboard')}"
        host, port = self.grpc.rsplit(":", 1)
        self.storage = GrpcStorageProxy(host=host, port=int(port))

    def dashboard_options(self):
        return ["--dashboard", self.base.removeprefix("http://"), "--artifacts", self.files,
                "--dashboard-dir", os.path.dirname(optuna_dashboard.__file__)]

    def real_dashboard(self):
        """The original on our storage; it keeps trials for seconds, so each look needs a new one."""
        app = optuna_dashboard.wsgi(self.storage, artifact_store=FileSystemArtifactStore(str(self.files)))
        server = wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=QuietHandler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def stop():
            server.shutdown()
            thread.join()
            server.server_close()
        self.addCleanup(stop)
        return f"http://127.0.0.1:{server.server_port}"

    def study(self, name="rich", trials=40, **keys):
        study = optuna.create_study(study_name=name, storage=self.storage,
                                    sampler=optuna.samplers.RandomSampler(seed=4), **keys)
        study.optimize(rich_objective, n_trials=trials, catch=RuntimeError)
        return study

    def assert_same(self, ours, theirs, where="$"):
        """Equal JSON; numbers to the last digits, lists that come from sets or maps in any order."""
        if isinstance(theirs, dict):
            self.assertEqual(sorted(ours), sorted(theirs), where)
            for key in theirs:
                self.assert_same(ours[key], theirs[key], f"{where}.{key}")
        elif isinstance(theirs, list):
            self.assertEqual(len(ours), len(theirs), f"{where}: {ours} {theirs}")
            by_name = [key for key in ("name", "key", "value", "id") if theirs and
                       all(isinstance(item, dict) and isinstance(item.get(key), str) for item in theirs)]
            if where.endswith(".preferences"):  # by entries with random ids
                ours, theirs = sorted(ours), sorted(theirs)
            if by_name:
                def order(item):
                    return json.dumps([item[key] for key in by_name] + [item.get("pytype"), item.get("distribution")],
                                      sort_keys=True)
                ours, theirs = sorted(ours, key=order), sorted(theirs, key=order)
            for i, (a, b) in enumerate(zip(ours, theirs)):
                self.assert_same(a, b, f"{where}[{i}]")
        elif isinstance(theirs, float) and isinstance(ours, (int, float)):
            self.assertTrue(math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12), f"{where}: {ours} {theirs}")
        else:
            self.assertEqual(ours, theirs, where)

    def compare(self, *paths):
        theirs = self.real_dashboard()
        for path in paths:
            with self.subTest(path=path):
                self.assert_same(json.loads(get(self.base, path)), json.loads(get(theirs, path)))

    def compare_study(self, study, *more):
        at = f"/api/studies/{study._study_id}"
        self.compare("/api/studies", at, f"{at}?after=0", f"{at}?after=17", f"{at}?after=999",
                     f"{at}/param_importances", *more)
        csvs = [list(csv.reader(io.StringIO(get(base, f"/csv/{study._study_id}").decode(), newline="")))
                for base in (self.base, self.real_dashboard())]
        self.assertEqual(csvs[0], csvs[1])

    def test_a_study_with_everything(self):
        study = self.study()
        study.set_user_attr("team", {"name": "a", "size": 3})
        study.set_user_attr("share", 1e-05)
        study.enqueue_trial({"x": 1, "rule": None, "lr": 1e-05})
        study.ask()
        save_note(study, "**Hello** " + "ä" * 3000)
        save_note(study.ask(), "one trial")
        figure = optuna.visualization.plot_optimization_history(study)
        save_plotly_graph_object(study, figure, graph_object_id="mine:1")
        register_objective_form_widgets(study, [ChoiceWidget(choices=["Good", "Bad"], values=[-1, 1])])
        with open(self.dir / "notes.png", "wb") as file:
            file.write(b"not a picture")
        upload_artifact(study_or_trial=study, file_path=str(self.dir / "notes.png"),
                        artifact_store=FileSystemArtifactStore(str(self.files)))
        upload_artifact(study_or_trial=study.ask(), file_path=str(self.dir / "notes.png"),
                        artifact_store=FileSystemArtifactStore(str(self.files)))
        self.compare_study(study)

    def test_studies_without_trials_and_with_few(self):
        study = optuna.create_study(study_name="empty", storage=self.storage, direction="maximize")
        self.compare_study(study)
        for state in (TrialState.WAITING, TrialState.RUNNING, TrialState.FAIL):
            study.add_trial(create_trial(state=state))
        self.compare_study(study)
        study.add_trial(create_trial(value=1))
        self.compare_study(study)
        # Here the original divides by the number of parameters.
        study.add_trial(create_trial(value=math.inf))
        at = f"/api/studies/{study._study_id}"
        self.compare(at)
        self.assertEqual(json.loads(get(self.base, f"{at}/param_importances")), {"param_importances": [[]]})

    def test_several_objectives(self):
        for directions in (["minimize", "maximize"], ["minimize", "maximize", "minimize"]):
            study = optuna.create_study(study_name=f"of {len(directions)}", storage=self.storage,
                                        directions=directions, sampler=optuna.samplers.RandomSampler(seed=2))

            def objective(trial):
                x = trial.suggest_float("x", 0, 5)
                y = trial.suggest_int("y", 0, 9, step=3)
                return [round(x * x), round(5 - x + y), y][:len(directions)]
            study.optimize(objective, n_trials=60)
            study.add_trial(create_trial(values=[math.inf] + [0.0] * (len(directions) - 1)))
            study.set_metric_names(["loss", "speed", "size"][:len(directions)])
            self.compare_study(study)

    def test_importances_of_many_spaces(self):
        spaces = {
            "wide": lambda t: t.suggest_float("a", -1e6, 1e6) + t.suggest_float("b", 0, 1e-3),
            "choices": lambda t: len(t.suggest_categorical("a", ["x", "yy", "zzz"])) + t.suggest_int("b", 0, 1),
            "single": lambda t: t.suggest_int("a", 3, 3) + t.suggest_float("b", 0, 1),
            "conditional": lambda t: t.suggest_float("c", 0, 1) if t.suggest_categorical("a", [True, False])
            else t.suggest_float("d", 0, 9),
            "moving": lambda t: t.suggest_float("a", 0, 1 + t.number % 2),
            "log": lambda t: math.log(t.suggest_float("a", 1e-9, 1, log=True)) + t.suggest_int("b", 1, 100, log=True),
            "equal": lambda t: 1.0 + 0 * t.suggest_float("a", 0, 1) + 0 * t.suggest_float("b", 0, 1),
        }
        theirs = self.real_dashboard()
        for name, objective in spaces.items():
            for direction, trials in (("minimize", 2), ("maximize", 23), ("minimize", 150)):
                study = optuna.create_study(study_name=f"{name} {direction} {trials}", storage=self.storage,
                                            direction=direction, sampler=optuna.samplers.RandomSampler(seed=trials))
                study.optimize(objective, n_trials=trials)
                path = f"/api/studies/{study._study_id}/param_importances"
                ours, real = json.loads(get(self.base, path)), json.loads(get(theirs, path))
                with self.subTest(space=name, trials=trials):
                    self.assert_same(ours, real)

    def test_create_rename_and_delete(self):
        status, made = send(self.base, "POST", "/api/studies", {"study_name": "by hand", "directions": ["Maximize"]})
        self.assertEqual(status, 201)
        self.assertEqual(made["study_summary"]["directions"], ["maximize"])
        study_id = made["study_summary"]["study_id"]
        study = optuna.load_study(study_name="by hand", storage=self.storage)
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3)
        for body in ({}, {"study_name": "x"}, {"study_name": "x", "directions": ["up"]}, {"study_name": 3},
                     {"study_name": "x", "directions": []}, {"study_name": "", "directions": ["minimize"]}):
            self.assertEqual(send(self.base, "POST", "/api/studies", body)[0], 400, body)
        self.assertEqual(send(self.base, "POST", "/api/studies", {"study_name": "by hand", "directions": ["minimize"]}),
                         (400, {"reason": "Study name already exists."}))
        send(self.base, "POST", "/api/studies/", {"study_name": "other", "directions": ["minimize"]})
        self.assertEqual(send(self.base, "POST", f"/api/studies/{study_id}/rename", {"study_name": "other"})[0], 400)
        self.assertEqual(send(self.base, "POST", f"/api/studies/{study_id}/rename", {})[0], 400)
        status, renamed = send(self.base, "POST", f"/api/studies/{study_id}/rename", {"study_name": "neu ä"})
        self.assertEqual((status, renamed["study_name"], renamed["study_id"]), (201, "neu ä", study_id))
        self.assertEqual(len(optuna.load_study(study_name="neu ä", storage=self.storage).trials), 3)
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)  # who was at work goes on
        self.assertEqual(send(self.base, "DELETE", f"/api/studies/{study_id}"), (204, None))
        self.assertEqual(send(self.base, "DELETE", f"/api/studies/{study_id}")[0], 404)
        self.assertEqual([s.study_name for s in optuna.get_all_study_summaries(self.storage)], ["other"])

    def test_notes_have_versions(self):
        study = optuna.create_study(storage=self.storage)
        trial = study.ask()
        for path in (f"/api/studies/{study._study_id}/note", f"/api/studies/{study._study_id}/{trial._trial_id}/note"):
            self.assertEqual(send(self.base, "PUT", path, {"version": 1, "body": "ä" * 5000}), (204, None))
            self.assertEqual(send(self.base, "PUT", path, {"version": 2, "body": "short\n\"two\""}), (204, None))
            status, answer = send(self.base, "PUT", path, {"version": 2, "body": "somebody else's"})
            self.assertEqual(status, 409)
            self.assertEqual(answer["note"], {"version": 2, "body": "short\n\"two\""})
            for body in ({}, {"version": 3}, {"body": "x"}, {"version": "3", "body": "x"}, {"version": 3, "body": 1}):
                self.assertEqual(send(self.base, "PUT", path, body)[0], 400, body)
        self.assertEqual(send(self.base, "PUT", f"/api/studies/{study._study_id}/999/note", {"version": 1, "body": ""})[0],
                         404)
        self.assertEqual(optuna_dashboard.get_note(study), "short\n\"two\"")
        self.assertEqual(optuna_dashboard.get_note(trial), "short\n\"two\"")
        self.compare_study(study)

    def test_a_note_is_written_by_one_of_many(self):
        study = optuna.create_study(storage=self.storage)
        path = f"/api/studies/{study._study_id}/note"
        statuses = []
        threads = [threading.Thread(target=lambda i=i: statuses.append(
            send(self.base, "PUT", path, {"version": 1, "body": str(i)})[0])) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses), [204] + [409] * 11)

    def test_tell_and_user_attributes(self):
        study = optuna.create_study(storage=self.storage)
        trial, other, third = study.ask(), study.ask(), study.ask()
        tell = f"/api/trials/{trial._trial_id}/tell"
        for body in ({}, {"state": "Running"}, {"state": 3}, {"state": "Complete"}, {"state": "Complete", "values": 1.0},
                     {"state": "Complete", "values": ["foo"]}, {"state": "Complete", "values": None}):
            self.assertEqual(send(self.base, "POST", tell, body)[0], 400, body)
        self.assertEqual(send(self.base, "POST", tell, {"state": "Complete", "values": [0.5]}), (204, None))
        status, answer = send(self.base, "POST", tell, {"state": "Fail"})
        self.assertEqual(status, 400)
        self.assertIn("has ended", answer["reason"])
        self.assertEqual(send(self.base, "POST", f"/api/trials/{other._trial_id}/tell", {"state": "fail"}), (204, None))
        self.assertEqual([t.state for t in study.trials], [TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING])
        self.assertEqual(study.trials[0].value, 0.5)
        attributes = f"/api/trials/{third._trial_id}/user-attrs"
        self.assertEqual(send(self.base, "POST", attributes, {"user_attrs": {"a": [1, "ä"], "b": 0.1}}), (204, None))
        self.assertEqual(study.trials[2].user_attrs, {"a": [1, "ä"], "b": 0.1})
        self.assertEqual(send(self.base, "POST", attributes, {})[0], 400)
        self.assertEqual(send(self.base, "POST", "/api/trials/999/tell", {"state": "Fail"})[0], 404)

    def test_artifacts(self):
        study = optuna.create_study(storage=self.storage)
        trial = study.ask()
        for owner in (f"{study._study_id}", f"{study._study_id}/{trial._trial_id}"):
            status, made = send(self.base, "POST", f"/api/artifacts/{owner}",
                                {"file": "data:image/png;base64,aGVsbG8=", "filename": "a ü.png"})
            self.assertEqual(status, 201)
            artifact = made["artifact_id"]
            self.assertEqual(made["artifacts"], [{"artifact_id": artifact, "filename": "a ü.png",
                                                  "mimetype": "image/png", "encoding": None}])
            self.assertEqual((self.files / artifact).read_bytes(), b"hello")
            with urllib.request.urlopen(f"{self.base}/artifacts/{owner}/{artifact}") as answer:
                self.assertEqual(answer.read(), b"hello")
                self.assertEqual(answer.headers["Content-Type"], "image/png")
            self.compare_study(study)
            self.assertEqual(send(self.base, "DELETE", f"/api/artifacts/{owner}/{artifact}"), (204, None))
            self.assertEqual(send(self.base, "DELETE", f"/api/artifacts/{owner}/{artifact}")[0], 404)
            self.assertEqual(send(self.base, "GET", f"/artifacts/{owner}/{artifact}")[0], 404)
            self.assertFalse((self.files / artifact).exists())
            self.compare_study(study)
            for body in ({}, {"file": "x"}, {"file": 3}, {"file": "data:;base64,%%%"}):
                self.assertEqual(send(self.base, "POST", f"/api/artifacts/{owner}", body)[0], 400, body)
        kept, gone = [send(self.base, "POST", f"/api/artifacts/{study._study_id}/{trial._trial_id}",
                           {"file": "data:;base64,", "filename": ""})[1]["artifact_id"] for _ in range(2)]
        study.tell(trial, 1)
        self.assertEqual(send(self.base, "DELETE", f"/api/artifacts/{study._study_id}/{trial._trial_id}/{gone}")[0], 204)
        detail = json.loads(get(self.base, f"/api/studies/{study._study_id}"))
        self.assertEqual([a["artifact_id"] for a in detail["trials"][0]["artifacts"]], [kept])
        self.assertEqual(send(self.base, "POST", f"/api/artifacts/{study._study_id}/{trial._trial_id}",
                              {"file": "data:;base64,"})[0], 400)
        self.assertEqual(send(self.base, "DELETE", f"/api/studies/{study._study_id}")[0], 204)
        self.assertEqual(list(self.files.iterdir()), [])

    def test_paths_lead_nowhere_else(self):
        (self.dir / "secret").write_text("secret")
        study = optuna.create_study(storage=self.storage)
        for path in ("/static/../index.html", "/static/..%2f..%2fsecret", "/static/%2e%2e/index.html", "/static/.hidden",
                     f"/artifacts/{study._study_id}/../secret", f"/artifacts/{study._study_id}/..%2fsecret",
                     "/static/nothing.js", "/api/nothing", "/api/studies/99999999999999999999", "/api/studies/x"):
            status, answer = send(self.base, "GET", path)
            self.assertEqual(status, 404, path)
            self.assertIn("reason", answer)

    def test_preferences(self):
        from optuna_dashboard.preferential import _system_attrs
        study = optuna.create_study(study_name="taste", storage=self.storage)
        self.storage.set_study_system_attr(study._study_id, "preference:is_preferential", True)
        _system_attrs.set_n_generate(study._study_id, self.storage, 3)
        for _ in range(4):
            study.ask()
        at = f"/api/studies/{study._study_id}"
        choice = {"mode": "ChooseWorst", "candidates": [0, 1, 2], "clicked": 1}
        for wrong in ({"mode": "x"}, {"clicked": 9}, {"candidates": ["a"]}, {"candidates": 3}, {"clicked": None}):
            self.assertEqual(send(self.base, "POST", f"{at}/preference", {**choice, **wrong})[0], 400, wrong)
        self.assertEqual(send(self.base, "POST", f"{at}/preference", choice), (204, None))
        self.assertEqual(send(self.base, "POST", f"{at}/preference",
                              {"mode": "ChooseWorst", "candidates": [0, 3], "clicked": 0}), (204, None))
        self.assertEqual(send(self.base, "POST", f"{at}/{study.trials[2]._trial_id}/skip"), (204, None))
        self.assertEqual(send(self.base, "PUT", f"{at}/preference_feedback_component",
                              {"output_type": "artifact", "artifact_key": "image"}), (204, None))
        self.assertEqual(send(self.base, "PUT", f"{at}/preference_feedback_component", {"output_type": "x"})[0], 400)
        self.assertEqual([t.state for t in study.trials], [TrialState.COMPLETE] * 4)
        self.compare("/api/studies", at)
        detail = json.loads(get(self.base, at))
        self.assertEqual([t["number"] for t in detail["best_trials"]], [3])
        first = detail["preference_history"][0]["history"]["id"]
        self.assertEqual(send(self.base, "DELETE", f"{at}/preference/{first}"), (204, None))
        self.assertTrue(json.loads(get(self.base, at))["preference_history"][0]["is_removed"])
        self.compare(at)
        self.assertEqual(send(self.base, "POST", f"{at}/preference/{first}"), (204, None))
        self.assertFalse(json.loads(get(self.base, at))["preference_history"][0]["is_removed"])
        self.assertEqual(send(self.base, "DELETE", f"{at}/preference/nothing")[0], 404)

    def test_a_study_of_the_pool(self):
        trial = self.write("trial.sh", "#!/bin/bash\nfor s in 1 2 3; do tuner tell --step $s --value 0.$s; done\n", 0o755)
        self.agent(2)
        self.run_tuner("submit", self.study_file([trial]), "--service", self.grpc, "--wait")
        study = optuna.load_study(study_name="e2e", storage=self.storage)
        self.compare_study(study)
        self.assertEqual(send(self.base, "POST", f"/api/studies/{study._study_id}/rename", {"study_name": "x"})[0], 403)
        self.assertEqual(send(self.base, "POST", f"/api/trials/{study.trials[0]._trial_id}/tell", {"state": "Fail"})[0], 400)

    def test_a_queue_without_a_search_space(self):
        trial = self.write("trial.sh", "#!/bin/bash\ntuner tell --value $ESPALIER_PARAM_X --final\n", 0o755)
        self.agent(2)
        self.run_tuner("submit", TunerTest.study(self, [trial], name="queue", sampler="queue", search_space=None, trials=None),
                       "--service", self.grpc)
        for i in range(6):
            status, told = send(f"http://{self.http}", "POST", "/api/studies/queue/enqueue",
                                {"parameters": {"x": i + 0.5, "rule": "ab"[i % 2]}})
            self.assertLess(status, 300, told)
        study = optuna.load_study(study_name="queue", storage=self.storage)
        wait_for(lambda: [t.state for t in study.trials] == [TrialState.COMPLETE] * 6, "all trials to complete")
        self.assertEqual([t.params["x"] for t in study.trials], [i + 0.5 for i in range(6)])
        at = f"/api/studies/{study._study_id}"
        shown = json.loads(get(self.base, at))
        self.assertEqual({p["name"]: p["param_external_value"] for p in shown["trials"][3]["params"]},
                         {"x": "3.5", "rule": "b"})
        space = {entry["name"]: entry["distribution"] for entry in shown["intersection_search_space"]}
        self.assertEqual((space["x"]["low"], space["x"]["high"]), (0.5, 5.5))
        self.assertEqual([choice["value"] for choice in space["rule"]["choices"]], ["a", "b"])
        (importances,) = json.loads(get(self.base, f"{at}/param_importances"))["param_importances"]
        self.assertEqual({one["name"] for one in importances}, {"x", "rule"})
        self.assertIn(b"Param x", get(self.base, f"/csv/{study._study_id}").splitlines()[0])

    def study_file(self, command):
        return TunerTest.study(self, command, search_space={
            "x": {"_type": "uniform", "_value": [0, 1]}, "n": {"_type": "randint", "_value": [1, 9]},
            "rule": {"_type": "choice", "_value": ["adascale", 2, 0.5]},
            "gauss": {"_type": "normal", "_value": [0, 1]}})

    def test_pages(self):
        with urllib.request.urlopen(self.base + "/") as answer:
            self.assertTrue(answer.url.endswith("/dashboard"))
            self.assertIn("script-src 'self'", answer.headers["Content-Security-Policy"])
        folder = pathlib.Path(optuna_dashboard.__file__).parent
        self.assertEqual(get(self.base, "/static/bundle.js"), (folder / "public/bundle.js").read_bytes())
        self.assertEqual(get(self.base, "/static/bundle.js", **{"Accept-Encoding": "gzip"}),
                         (folder / "public/bundle.js.gz").read_bytes())
        self.assertEqual(get(self.base, "/favicon.ico"), (folder / "img/favicon.ico").read_bytes())
        self.assertEqual(get(self.base, "/dashboard/studies/1/analytics"), (folder / "index.html").read_bytes())
        self.assertEqual(json.loads(get(self.base, "/api/meta"))["artifact_is_available"], True)
        self.assertIn(f'href="{self.base}/dashboard"', get(f"http://{self.http}", "/links").decode())

    def test_other_sites_pages_are_refused(self):
        body = {"study_name": "evil", "directions": ["minimize"]}
        for origin in ("http://evil.example", "null"):
            self.assertEqual(send(self.base, "POST", "/api/studies", body, Origin=origin)[0], 403)
        self.assertEqual(send(self.base, "GET", "/api/studies", Host="evil.example:80")[0], 403)
        self.assertEqual(send(self.base, "POST", "/api/studies", body, Origin=self.base)[0], 201)
        study = optuna.load_study(study_name="evil", storage=self.storage)
        self.assertEqual(send(self.base, "PUT", f"/api/studies/{study._study_id}/note", {"version": 1, "body": ""},
                              Origin=self.base), (200, {}), "what the pages take for success")

    def test_bad_bodies(self):
        study = optuna.create_study(storage=self.storage)
        for body in (b"{", b"[]", b"\xff\xfe", b'{"a": 1, "a": 2}', b"nul"):
            for method, path in (("POST", "/api/studies"), ("PUT", f"/api/studies/{study._study_id}/note"),
                                 ("DELETE", f"/api/studies/{study._study_id}"), ("POST", "/api/artifacts/1")):
                status, answer = send(self.base, method, path, body)
                self.assertEqual(status, 400, (method, path, body))
                self.assertIn("reason", answer)
        for after in ("-1", "x", "1e3", ""):
            self.assertEqual(send(self.base, "GET", f"/api/studies/{study._study_id}?after={after}")[0], 400)


class DashboardWithToken(TunerTest):
    def test_password_or_bearer(self):
        token = self.write("token", "s3cret-token-of-some-length\n", 0o600)
        process = self.start("serve", "--grpc", "127.0.0.1:0", "--db", self.dir / "x.db", "--token-file", token,
                             "--dashboard", "127.0.0.1:0")
        base = f"http://{self.told_address(process, 'dashboard')}"
        import base64
        password = base64.b64encode(b"anybody:s3cret-token-of-some-length").decode()
        self.assertEqual(send(base, "GET", "/api/studies")[0], 401)
        for wrong in ("Basic x", "Basic " + base64.b64encode(b"a:b").decode(), "Bearer x"):
            self.assertEqual(send(base, "GET", "/api/studies", Authorization=wrong)[0], 401)
        for right in ("Basic " + password, "Bearer s3cret-token-of-some-length"):
            self.assertEqual(send(base, "GET", "/api/studies", Authorization=right)[0], 200)
        self.assertIn(b"pip install optuna-dashboard", get(base, "/dashboard", Authorization="Basic " + password))

    def test_folders_are_checked(self):
        for options in (["--dashboard-dir", self.dir], ["--artifacts", self.dir / "nothing"]):
            done = self.run_tuner("serve", "--grpc", "127.0.0.1:0", "--db", self.dir / "y.db",
                                  "--dashboard", "127.0.0.1:0", *options, code=2)
            self.assertIn(str(options[1]), done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
