"""Optuna's own tests of storages, trials and studies, with our service on SQLite as the storage.

With --repeat N the tests of 5.0.0 run N times on the same two services."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import environment
from harness import TunerTest

HERE = pathlib.Path(__file__).parent
FILES = ["storages_tests/test_storages.py", "storages_tests/test_grpc.py", "storages_tests/test_with_server.py",
         "trial_tests/test_trial.py", "trial_tests/test_frozen.py", "study_tests/test_study.py",
         "study_tests/test_optimize.py", "study_tests/test_dataframe.py"]
# test_with_server.py learns a further kind of storage; nothing else of Optuna's tests is touched.
KNOWN_MODE = '        elif storage_mode == "journal-redis":\n'
OUR_MODE = """        elif storage_mode == "grpc":
            host, port = storage_url.rsplit(":", 1)
            storage = optuna.storages.GrpcStorageProxy(host=host, port=int(port))
"""
REPEAT = 1
# The order of parameters is no part of the protocol. 5.0.0 skips this test for servers by itself, 4.5.0 only for its own.
NOT_OF_THE_PROTOCOL = "test_get_all_trials_params_order"


class Suite(TunerTest):
    def run_suite(self, version, addresses):
        folder = environment.folder(version)
        work = self.dir / version
        shutil.copytree(folder / f"optuna-{version}" / "tests", work / "tests")
        shutil.copy(folder / f"optuna-{version}" / "pyproject.toml", work)
        with_server = work / "tests" / "storages_tests" / "test_with_server.py"
        text = with_server.read_text()
        known = KNOWN_MODE if KNOWN_MODE in text else KNOWN_MODE.replace("        elif", "    elif")
        self.assertIn(known, text)
        ours = OUR_MODE if known == KNOWN_MODE else "".join(line[4:] for line in OUR_MODE.splitlines(keepends=True))
        with_server.write_text(text.replace(known, ours + known))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.dir), "PYTHONPATH": str(HERE), "EXTERNAL_STORAGE": ",".join(addresses),
               "TEST_DB_URL": addresses[0], "TEST_DB_MODE": "grpc", "GRPC_ENABLE_FORK_SUPPORT": "1",
               "GRPC_VERBOSITY": "NONE"}
        files = [f"tests/{f}" for f in FILES if (work / "tests" / f).exists()]
        done = subprocess.run([environment.python(version), "-m", "pytest", "-p", "external_storage", "-q", "--color=no",
                               "--timeout=180", "-p", "no:cacheprovider", "-k",
                               f"(grpc_external or test_with_server) and not {NOT_OF_THE_PROTOCOL}", "-rfE", *files], cwd=work, env=env, capture_output=True, text=True)
        shutil.rmtree(work)
        summary = done.stdout.splitlines()[-1]
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        return int(re.search(r"(\d+) passed", summary).group(1)), summary

    def services(self):
        addresses = []
        for name in ("first", "second"):
            self.serve(self.dir / f"{name}.db")
            addresses.append(self.grpc)
        return addresses

    def test_optuna_5(self):
        addresses = self.services()
        for _ in range(REPEAT):
            passed, summary = self.run_suite("5.0.0", addresses)
            print(summary, flush=True)
            # As many as pass on Optuna's own proxy.
            self.assertGreaterEqual(passed, 189, summary)

    def test_optuna_4_5(self):
        passed, summary = self.run_suite("4.5.0", self.services())
        print(summary, flush=True)
        self.assertGreaterEqual(passed, 100, summary)


if __name__ == "__main__":
    if "--repeat" in sys.argv:
        at = sys.argv.index("--repeat")
        REPEAT = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
