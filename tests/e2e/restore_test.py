"""A service whose database is lost, and one that goes on with a backup: what it gave away since may not count again."""
import sqlite3
import unittest

from harness import LEASE_S, TunerTest, replicas_of, wait_for

NO_DATABASE = 74  # exit code


class Restore(TunerTest):
    def submit(self, name):
        study = self.study(["/bin/sh", "-c", "exec sleep 1000"], name=name, trials=1)
        self.run_tuner("submit", study, "--service", self.grpc)

    def sleepers(self, count):
        return wait_for(lambda: (found := replicas_of(self.node.pid, "sleep")) and len(found) == count and found,
                        f"{count} replicas")

    def test_a_restored_service_ends_the_replicas_of_the_lost_time_and_repeats_no_id(self):
        database, backup = self.dir / "pool.db", self.dir / "monday.db"
        service = self.serve(database, options=("--lease", LEASE_S))
        self.node = self.agent(3)
        self.run_tuner("token", "create", "--service", self.grpc, "--role", "view", "--name", "ada", "--out", self.dir / "ada")
        self.submit("kept")
        before = self.sleepers(1)
        self.run_tuner("db", "backup", database, backup)
        self.assertEqual(backup.stat().st_mode & 0o777, 0o600)
        key = (self.dir / "pool.db.credentials/trial.key").read_text()
        self.assertEqual((self.dir / "monday.db.credentials/trial.key").read_text(), key)
        self.submit("lost")
        before = self.sleepers(2)
        self.assertIn("another tuner service has it open", self.run_tuner("db", "restore", backup, database, code=2).stderr)
        service.kill()
        service.wait()
        told = self.run_tuner("db", "restore", backup, database).stdout
        self.assertIn("1 token revoked", told)
        self.assertIn(f"the database that was there: {database}.replaced", told)
        with sqlite3.connect(f"{database}.replaced") as former:
            self.assertEqual(former.execute("SELECT count(*) FROM studies").fetchone(), (2,))

        self.serve(database, grpc=self.grpc, http=self.http, options=("--lease", LEASE_S))
        wait_for(lambda: not set(before) & set(replicas_of(self.node.pid, "sleep")), "the former replicas to end")
        self.sleepers(1)  # the kept trial's, started again
        self.assertNotEqual((self.dir / "pool.db.credentials/trial.key").read_text(), key)
        self.run_tuner("show", "lost", "--service", self.grpc, code=4)
        refused = self.run_tuner("ls", "--service", self.grpc, "--token-file", self.dir / "ada", code=2)
        self.assertIn("was ended", refused.stderr)
        self.submit("lost")
        self.sleepers(2)
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as now:
            kept, other = [row[0] for row in now.execute("SELECT id FROM trials ORDER BY id")]
        self.assertEqual(kept, 1)
        self.assertGreater(other, 10 ** 9)

    def test_a_service_whose_database_is_removed_ends_and_acknowledges_nothing(self):
        database = self.dir / "pool.db"
        service = self.serve(database)
        database.unlink()
        self.run_tuner("submit", self.study(["/bin/true"]), "--service", self.grpc, code=3)
        self.assertEqual(service.wait(), NO_DATABASE)
        self.assertIn(f"database {database}: the file was removed", self.output(service))

    def test_an_idle_service_ends_as_well(self):
        database = self.dir / "pool.db"
        service = self.serve(database)
        database.rename(self.dir / "away.db")
        self.assertEqual(service.wait(), NO_DATABASE)
        self.assertIn("renamed or moved away", self.output(service))
        self.run_tuner("db", "check", self.dir / "away.db")


if __name__ == "__main__":
    unittest.main()
