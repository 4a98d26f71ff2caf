"""`tuner db` with files of the real Optuna: in, out, there and back, and files that are damaged."""
import environment

environment.run_inside(__file__)

import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import time
import unittest
import warnings

# Local time must not be UTC, or a file's times could be misread unnoticed.
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()

import optuna
from optuna.storages import GrpcStorageProxy

import everything
from harness import TUNER, TunerTest

warnings.simplefilter("ignore")
# A transaction that outgrows SQLite's cache, so that half of it is in the file when its process ends.
KILLED_WRITER = """
import os, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 2")
file.execute("BEGIN IMMEDIATE")
for i in range(2000):
    file.execute("INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (4, ?, ?)", (str(i), "1" * 500))
os._exit(1)
"""
HERE = pathlib.Path(__file__).parent


def by_version(version, action, path):
    done = subprocess.run([environment.python(version), HERE / "everything.py", action, path], check=True,
                          capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def words(sql):
    return sql and " ".join(sql.split())


def schema(path):
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        versions = [connection.execute(f"SELECT * FROM {table}").fetchall()
                    for table in ("alembic_version", "version_info")]
    return [(*row[:3], words(row[3])) for row in rows], versions


class DbTest(TunerTest):
    def service_record(self):
        host, port = self.grpc.rsplit(":", 1)
        storage = GrpcStorageProxy(host=host, port=int(port))
        storage.wait_server_ready(timeout=60)
        return everything.record(storage)


class Journeys(DbTest):
    def there_and_back(self, version):
        source, database, back = (self.dir / name for name in ("source.db", "tuner.db", "back.db"))
        wanted = by_version(version, "make", source)
        before = source.read_bytes()
        self.run_tuner("db", "import-optuna", source, database)
        self.assertEqual(source.read_bytes(), before, "the source is only read")
        self.run_tuner("db", "check", database)
        service = self.serve(database)
        self.assertEqual(self.service_record(), wanted)
        # The service goes on while its file is read.
        self.run_tuner("db", "export-optuna", database, back)
        self.assertEqual(everything.record_of_file(back), wanted)
        service.terminate()
        self.finish(service)
        again = self.dir / "again.db"
        self.run_tuner("db", "import-optuna", back, again)
        self.serve(again)
        self.assertEqual(self.service_record(), wanted)
        return back

    def test_a_file_of_optuna_5(self):
        back = self.there_and_back("5.0.0")
        study = optuna.load_study(study_name="genetic", storage=everything.url(back),
                                  sampler=optuna.samplers.NSGAIISampler(population_size=4, seed=2))
        study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=6)
        self.assertEqual([t.number for t in study.trials], list(range(20)))

    def test_a_file_of_optuna_4(self):
        self.there_and_back("4.5.0")

    def test_an_exported_file_has_the_schema_that_optuna_makes(self):
        real, ours = self.dir / "real.db", self.dir / "ours.db"
        optuna.create_study(storage=everything.url(real), study_name="x")
        self.run_tuner("db", "import-optuna", real, self.dir / "tuner.db")
        self.run_tuner("db", "export-optuna", self.dir / "tuner.db", ours)
        self.assertEqual(schema(ours), schema(real))

    def test_some_studies_under_other_names(self):
        source, database = self.dir / "source.db", self.dir / "tuner.db"
        by_version("5.0.0", "make", source)
        self.run_tuner("db", "import-optuna", source, database, "--study", "pruned", "--study", "empty",
                       "--rename", "pruned=cut")
        listed = self.run_tuner("ls", "--db", database).stdout
        self.assertIn("cut", listed)
        self.assertNotIn("genetic", listed)
        refused = self.run_tuner("db", "import-optuna", source, database, code=2)
        self.assertIn('has a study "empty" already', refused.stderr)
        self.assertIn("--rename", refused.stderr)
        self.assertEqual(self.run_tuner("ls", "--db", database).stdout, listed, "all or nothing")
        self.assertIn('no study "pruend"', self.run_tuner("db", "import-optuna", source, database, "--study", "pruend",
                                                         code=4).stderr)
        self.assertIn('"cut"', self.run_tuner("db", "export-optuna", database, self.dir / "out.db", "--study", "x",
                                              code=4).stderr)

    def test_studies_of_the_pool_open_in_optuna(self):
        study = self.study(["/bin/sh", "-c", "tuner tell --value 0.5 --step 1; tuner tell --value 0.25 --final"], trials=2)
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 1)
        out = self.dir / "pool.db"
        self.run_tuner("db", "export-optuna", self.dir / "run" / "espalier.db", out)
        trials = optuna.load_study(study_name="e2e", storage=everything.url(out)).trials
        self.assertEqual([t.value for t in trials], [0.25, 0.25])
        self.assertEqual(trials[0].intermediate_values[1], 0.5)
        self.assertEqual(trials[0].distributions["x"], optuna.distributions.FloatDistribution(0, 1))


class OpenDatabases(DbTest):
    def test_what_is_possible_while_a_service_has_it(self):
        source, database, copy = (self.dir / name for name in ("source.db", "tuner.db", "copy.db"))
        wanted = by_version("5.0.0", "make", source)
        self.run_tuner("db", "import-optuna", source, database)
        service = self.serve(database)
        self.assertIn("studies: 4,", self.run_tuner("db", "check", database).stdout)
        self.run_tuner("db", "backup", database, copy)
        for verb in (["compact", database], ["import-optuna", source, database]):
            refused = self.run_tuner("db", *verb, code=2)
            self.assertIn("another tuner service has it open", refused.stderr)
        self.run_tuner("db", "backup", database, copy, code=2)
        self.assertEqual(self.service_record(), wanted)
        service.terminate()
        self.finish(service)
        self.serve(copy)
        self.assertEqual(self.service_record(), wanted, "of the copy")

    def test_compact_after_a_deletion(self):
        source, database = self.dir / "source.db", self.dir / "tuner.db"
        by_version("5.0.0", "make", source)
        self.run_tuner("db", "import-optuna", source, database)
        service = self.serve(database)
        self.run_tuner("rm", "genetic", "--service", self.grpc)
        wanted = self.service_record()
        service.kill()
        service.wait()
        self.assertIn("before", self.run_tuner("db", "compact", database).stdout)
        self.run_tuner("db", "check", database)
        self.serve(database)
        self.assertEqual(self.service_record(), wanted)


class DamagedFiles(DbTest):
    def damaged(self, sound):
        """(what, path) for each way in which a file is not what it should be."""
        content = sound.read_bytes()
        draw = random.Random(1)

        def file(name, data):
            path = self.dir / f"{name}.db"
            path.write_bytes(data)
            return name, path

        yield file("half", content[:len(content) // 2])
        # From the second page on: the first alone would already be no database.
        yield file("noise", content[:4096] + draw.randbytes(len(content) - 4096))
        yield file("text", b"a text, and long enough to look like something\n" * 100)
        yield file("empty", b"")
        yield "missing", self.dir / "missing.db"
        folder = self.dir / "folder.db"
        folder.mkdir(exist_ok=True)
        yield "folder", folder

    def refused(self, *arguments):
        done = subprocess.run([TUNER, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn(done.returncode, (1, 2), f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def setUp(self):
        super().setUp()
        self.source, self.database = self.dir / "source.db", self.dir / "tuner.db"
        by_version("5.0.0", "make", self.source)
        self.run_tuner("db", "import-optuna", self.source, self.database, "--study", "pruned")

    def test_our_databases(self):
        sound = self.database.read_bytes()
        out = self.dir / "out.db"
        for what, path in self.damaged(self.database):
            content = path.read_bytes() if path.is_file() else None
            for verb in (["check", path], ["backup", path, out], ["compact", path], ["export-optuna", path, out]):
                with self.subTest(what=what, verb=verb[0]):
                    self.assertIn(path.name, self.refused("db", *verb))
                    self.assertFalse(out.exists())
            if content is not None:
                self.assertEqual(path.read_bytes(), content, f"{what} is as it was")
        self.assertEqual(self.database.read_bytes(), sound)

    def test_files_to_import(self):
        sound = self.database.read_bytes()
        for what, path in self.damaged(self.source):
            with self.subTest(what=what):
                self.assertIn(path.name, self.refused("db", "import-optuna", path, self.database))
                self.assertEqual(self.database.read_bytes(), sound)
                new = self.dir / "new.db"
                self.refused("db", "import-optuna", path, new)
                self.assertFalse(new.exists())

    def test_a_file_whose_writer_was_killed(self):
        subprocess.run([sys.executable, "-c", KILLED_WRITER, self.source], check=False)
        self.assertTrue(pathlib.Path(f"{self.source}-journal").exists())
        told = self.refused("db", "import-optuna", self.source, self.database, "--study", "empty")
        self.assertIn("stopped in the middle", told)
        wanted = everything.record_of_file(self.source)  # Optuna puts it right
        self.run_tuner("db", "import-optuna", self.source, self.dir / "new.db")
        self.serve(self.dir / "new.db")
        self.assertEqual(self.service_record(), wanted)

    def test_databases_to_import_into(self):
        for what, path in self.damaged(self.database):
            if what in ("empty", "missing"):
                continue  # there a new database is made
            with self.subTest(what=what):
                self.assertIn(path.name, self.refused("db", "import-optuna", self.source, path, "--study", "empty"))


if __name__ == "__main__":
    unittest.main()
