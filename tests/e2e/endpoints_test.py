#!/usr/bin/env python3
"""Who gets in: other users of the machine, other machines' clients, and how far each role reaches. As root it is another user
itself (a child process becomes `nobody`); else only what one user can try is tried."""
import hashlib
import json
import os
import pathlib
import pty
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

from harness import LEASE_S, PATIENCE_S, ROOT, TUNER, TunerTest, kill, wait_for

sys.path.insert(0, str(ROOT / "tests/suite"))
import machine  # noqa: E402

NOBODY = 65534
IS_ROOT = os.geteuid() == 0


class Frontends(TunerTest):
    def setUp(self):
        super().setUp()
        # Where another user may look for the program and its token.
        self.open_folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-e2e-open-"))
        self.open_folder.chmod(0o755)
        self.tuner = TUNER
        if IS_ROOT:
            self.tuner = str(self.open_folder / "tuner")
            shutil.copy(TUNER, self.tuner)
            os.chmod(self.tuner, 0o755)

    def tearDown(self):
        super().tearDown()
        shutil.rmtree(self.open_folder, ignore_errors=True)

    def as_nobody(self, *command):
        """Runs a program as another user of this machine."""
        keys = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
        env = {k: v for k, v in os.environ.items() if not k.startswith("ESPALIER_")}
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd="/", env=env,
                              timeout=PATIENCE_S, **keys)

    def tuner_as_nobody(self, *arguments):
        return self.as_nobody(self.tuner, *arguments)

    def token(self, role, *more, name=None):
        name = name or role
        made = self.run_tuner("token", "create", "--role", role, "--name", name, *more)
        path = self.open_folder / f"{name}.token"
        path.write_text(made.stdout)
        path.chmod(0o644)
        return str(path)


class Loopback(Frontends):
    def http_status_as_nobody(self, path, token=None):
        code = ("import sys, urllib.request, urllib.error\n"
                "request = urllib.request.Request(sys.argv[1])\n"
                "if sys.argv[2]: request.add_header('Authorization', 'Bearer ' + open(sys.argv[2]).read().strip())\n"
                "try: print(urllib.request.urlopen(request).status)\n"
                "except urllib.error.HTTPError as error: print(error.code)\n")
        done = self.as_nobody("/usr/bin/python3", "-c", code, f"http://{self.http}{path}", token or "")
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_the_own_user_needs_nothing(self):
        self.serve(self.dir / "pool.db")
        env = {"ESPALIER_SERVICE": self.grpc}
        self.run_tuner("ls", env=env)
        self.run_tuner("token", "ls", env=env)
        self.run_tuner("submit", self.study(["/bin/true"]), env=env)

    def refusal(self, *arguments, env=None):
        done = subprocess.run([TUNER, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=dict(os.environ, **(env or {})))
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def test_a_token_decides_also_where_the_own_user_shows_it(self):
        self.serve(self.dir / "pool.db")
        here = ("--service", self.grpc)
        view, foreign = self.token("view", *here), self.write("foreign", f"esp1.0123abcd.{'1' * 64}\n", 0o600)
        study = self.study(["/bin/true"])
        self.run_tuner("ls", *here, "--token-file", view)
        self.assertIn("has the role view", self.refusal("submit", study, *here, "--token-file", view))
        self.assertIn("needs administer", self.refusal("token", "ls", *here, env={"ESPALIER_TOKEN_FILE": view}))
        self.assertIn("as the service's own user you need none", self.refusal("ls", *here, "--token-file", foreign))
        connected = self.held_address()
        self.start("connect", self.grpc, "--token-file", view, "--listen", connected)
        through = ("--service", connected)
        wait_for(lambda: subprocess.run([TUNER, "ls", *through], capture_output=True).returncode == 0, "the port")
        self.assertIn("needs submit", self.refusal("submit", study, *through))
        self.run_tuner("token", "rm", "view", *here)
        self.assertIn("tuner token rm", self.refusal("ls", *here, "--token-file", view))
        self.run_tuner("submit", study, *here)

    def test_the_environments_token_is_not_shown_to_a_run_of_ones_own(self):
        script = self.write("trial.sh", f"#!/bin/sh\nwhile [ ! -e {self.dir}/over ]; do sleep 0.1; done\n"
                            "tuner tell --final --value 1\n", 0o755)
        foreign = {"ESPALIER_TOKEN_FILE": self.write("foreign", f"esp1.0123abcd.{'1' * 64}\n", 0o600)}
        run = self.start("run", self.study([script], trials=1), "--dir", self.dir / "run", "--slots", 1)
        wait_for((self.dir / "run/service.json").exists, "the run to answer")
        self.assertIn("e2e", self.run_tuner("ls", "--dir", self.dir / "run", env=foreign).stdout)
        (self.dir / "over").touch()
        run.wait()

    def test_another_user_needs_a_token_of_the_right_role(self):
        machine.need(self, "unprivileged_user")
        self.serve(self.dir / "pool.db")
        os.environ["ESPALIER_SERVICE"] = self.grpc
        self.addCleanup(os.environ.pop, "ESPALIER_SERVICE")
        shut = self.tuner_as_nobody("ls", "--service", self.grpc)
        self.assertNotEqual(shut.returncode, 0)
        self.assertIn("needs its token", shut.stderr)
        self.assertIn("tuner token create", shut.stderr)
        self.assertEqual(self.http_status_as_nobody("/api/studies"), 401)
        self.assertEqual(self.http_status_as_nobody("/healthz"), 200)

        view = self.token("view")
        self.assertEqual(self.tuner_as_nobody("ls", "--service", self.grpc, "--token-file", view).returncode, 0)
        self.assertEqual(self.http_status_as_nobody("/api/studies", view), 200)
        study = self.study(["/bin/true"])
        os.chmod(self.dir, 0o755)
        small = self.tuner_as_nobody("submit", study, "--service", self.grpc, "--token-file", view)
        self.assertNotEqual(small.returncode, 0)
        self.assertIn("has the role view", small.stderr)
        self.assertIn("needs submit", small.stderr)
        submit = self.token("submit")
        done = self.tuner_as_nobody("submit", study, "--service", self.grpc, "--token-file", submit)
        self.assertEqual(done.returncode, 0, done.stderr)
        larger = self.tuner_as_nobody("token", "ls", "--service", self.grpc, "--token-file", submit)
        self.assertIn("needs administer", larger.stderr)

        self.run_tuner("token", "rm", "view")
        ended = self.tuner_as_nobody("ls", "--service", self.grpc, "--token-file", view)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("tuner token rm", ended.stderr)

    def test_open_loopback_is_for_everybody(self):
        self.serve(self.dir / "pool.db", options=["--open-loopback"])
        done = self.tuner_as_nobody("ls", "--service", self.grpc)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_trust_in_loopback_all_show_a_token(self):
        process = self.start("serve", "--grpc", "127.0.0.1:0", "--db", self.dir / "pool.db", "--no-loopback-trust")
        self.grpc = self.told_address(process, "gRPC")
        shut = subprocess.run([self.tuner, "ls", "--service", self.grpc], capture_output=True, text=True)
        self.assertNotEqual(shut.returncode, 0)
        self.assertIn("needs its token", shut.stderr)
        self.run_tuner("ls", "--service", self.grpc, "--token-file", self.dir / "pool.db.credentials" / "administer.token")

    def test_tokens_are_made_listed_and_ended(self):
        self.serve(self.dir / "pool.db")
        where = ("--service", self.grpc)
        made = self.run_tuner("token", "create", "--role", "submit", "--name", "ada", "--expires", "90d", *where)
        self.assertRegex(made.stdout, r"^esp1\.[0-9a-f]{8}\.[0-9a-f]{64}\n$")
        listed = self.run_tuner("token", "ls", *where).stdout
        self.assertIn("ada", listed)
        self.assertIn("valid until", listed)
        self.assertNotIn(made.stdout.split(".")[2].strip(), listed)
        [token] = json.loads(self.run_tuner("token", "ls", "--json", *where).stdout)["tokens"]
        self.assertEqual((token["name"], token["role"], token["text"]), ("ada", "submit", ""))
        to_file = ("token", "create", "--role", "view", "--name", "eve", "--out", self.dir / "eve.token", *where)
        made = self.run_tuner(*to_file)
        self.assertEqual(made.stdout, "")
        self.assertIn("eve.token, for its user alone", made.stderr)
        self.assertEqual(stat.S_IMODE((self.dir / "eve.token").stat().st_mode), 0o600)
        self.run_tuner("ls", *where, "--token-file", self.dir / "eve.token")
        self.assertIn("exists already and is not overwritten", self.run_tuner(*to_file, code=2).stderr)
        lost = ("token", "create", "--role", "administer", "--name", "lost", *where)
        self.assertIn("--out", self.run_tuner(*lost, "--out", self.dir / "absent" / "lost.token", code=2).stderr)
        self.assertNotIn("lost", self.run_tuner("token", "ls", *where).stdout)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TUNER, *lost], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertRegex(done.stderr, r"^tuner token create: token lost \(\w+\) is revoked again: cannot write to stdout: .+\n$")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(self.run_tuner("token", "ls", *where).stdout, r"lost +administer .* removed")
        self.run_tuner("token", "rm", "ada", *where)
        self.assertIn("removed", self.run_tuner("token", "ls", *where).stdout)
        bad = self.run_tuner("token", "create", "--role", "view", "--name", "b", "--expires", "soon", *where, code=2)
        self.assertIn("--expires soon", bad.stderr)
        self.run_tuner("token", "create", "--role", "king", "--name", "b", *where, code=2)
        self.run_tuner("token", "rm", "nobody", *where, code=self.code_of_unknown())

    def code_of_unknown(self):
        """What the verbs answer of a thing that is not there."""
        return subprocess.run([TUNER, "show", "no-such-study", "--service", self.grpc],
                              capture_output=True).returncode


class Reachable(Frontends):
    """A service on all addresses: TLS, and tokens that carry the hash of its certificate. Clients come over loopback, but
    speak TLS as from elsewhere; the test of a word keeps the kernel's word out of it."""

    def serve_open(self, *options, **keys):
        self.address = self.held_address("0.0.0.0")
        return self.serve_again(*options, **keys)

    def serve_again(self, *options, **keys):
        process = self.start("serve", "--grpc", self.address, "--db", self.dir / "pool.db", *options, **keys)
        wait_for(lambda: "database" in self.output(process) or process.poll() is not None, "the service to start")
        self.assertEqual(self.told_address(process, "gRPC"), self.address)
        self.grpc = f"127.0.0.1:{self.address.rpartition(':')[2]}"
        self.folder = self.dir / "pool.db.credentials"
        return process

    def test_one_line_and_one_file_are_enough(self):
        process = self.serve_open()
        printed = self.output(process)
        token = (self.folder / "join.token").read_text().strip()
        self.assertRegex(token, r"^esp1\.[0-9a-f]{8}\.[0-9a-f]{64}\.[0-9a-f]{64}$")
        self.assertIn(f"to join: copy {self.folder}/join.token to the machine, for its user alone, and there: tuner agent "
                      f"--join ", printed)
        self.assertNotIn(token.split(".")[2], printed, "others may read a log")
        for path in self.folder.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)

        stranger = self.start("agent", "--join", self.grpc, "--slots", 1, "--name", "n0", "--dir", self.dir / "n0")
        wait_for(lambda: "if it speaks TLS, show the token of its agents with --token-file FILE" in self.output(stranger),
                 "the agent to say what it lacks")
        shut_out = self.run_tuner("ls", "--service", self.grpc, code=3).stderr
        self.assertIn("if it speaks TLS, give a token of it with --token-file FILE", shut_out)
        where = ("--service", self.grpc, "--token-file", self.folder / "administer.token")
        self.run_tuner("ls", *where)
        joined = self.write("join.token", token + "\n", 0o600)
        # A proxy for the web, at which nobody answers, does not matter.
        proxies = {name: f"http://{self.unanswered_address()}" for name in ("http_proxy", "https_proxy", "grpc_proxy")}
        self.start("agent", "--join", self.grpc, "--slots", 2, "--name", "n1", "--dir", self.dir / "n1", "--token-file",
                   joined, env={**proxies, "no_proxy": "", "no_grpc_proxy": ""})
        script = self.write("trial.sh", "#!/bin/bash\n"
                            "cp $ESPALIER_TOKEN_FILE token-of-$ESPALIER_TRIAL_NUMBER\n"
                            "tuner tell --value 0.5 --final\n", 0o755)
        self.run_tuner("submit", self.study([script], trials=2), "--wait", *where)
        record = json.loads(self.run_tuner("export", "e2e", "--format", "json", *where).stdout)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 2)
        tokens = {path.read_text().split(".")[1] for path in self.dir.rglob("token-of-*")}
        self.assertEqual(len(tokens), 2, "each replica has a token of its own")
        self.assertTrue(all(name.startswith("trial-") for name in tokens))

    def test_a_terminal_shows_the_token_to_join_with(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen([TUNER, "serve", "--grpc", "0.0.0.0:0", "--db", self.dir / "pool.db"],
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        os.close(theirs)
        printed = b""
        while b"database" not in printed:
            printed += os.read(ours, 4096)
        token = (self.dir / "pool.db.credentials/join.token").read_text().strip()
        self.assertIn(f"to join: (umask 077; echo {token} > join.token) && tuner agent --join ", printed.decode())

    def test_an_agent_reads_its_token_again_when_the_service_has_new_ones(self):
        service = self.serve_open()
        joined = self.write("join.token", (self.folder / "join.token").read_text(), 0o600)
        agent = self.start("agent", "--join", self.grpc, "--slots", 1, "--name", "n1", "--dir", self.dir / "n1",
                           "--token-file", joined)

        def pool():
            return self.run_tuner("pool", "--json", "--service", self.grpc, "--token-file", self.folder / "administer.token")

        wait_for(lambda: json.loads(pool().stdout)["slots"] == 1, "the agent to join")
        kill(service.pid)
        service.wait()
        shutil.rmtree(self.folder)
        self.serve_again()
        wait_for(lambda: "trying again" in self.output(agent), "the agent to be refused")
        self.assertEqual(json.loads(pool().stdout).get("slots", 0), 0)
        self.write("join.token", (self.folder / "join.token").read_text(), 0o600)
        wait_for(lambda: json.loads(pool().stdout).get("slots", 0) == 1, "the agent to join by the new token")
        self.assertIn(f"{joined} holds another token now", self.output(agent))

    def test_errors_name_what_is_wrong(self):
        self.serve_open()
        good = (self.folder / "administer.token").read_text().strip()
        scheme, ident, secret, pin = good.split(".")

        def refusal(token):
            path = self.write("bad.token", token + "\n", 0o600)
            done = subprocess.run([TUNER, "ls", "--service", self.grpc, "--token-file", path], capture_output=True,
                                  text=True)
            self.assertNotEqual(done.returncode, 0, token)
            return done.stderr

        wrong = refusal(f"{scheme}.{ident}.{secret}.{'0' * 64}")
        self.assertIn("shows a certificate with hash " + pin[:16], wrong)
        self.assertIn("another pool", wrong)
        self.assertNotIn(secret, wrong)

    def test_a_service_without_tls_is_told_apart(self):
        process = self.serve_open("--plaintext")
        self.assertIn("in the clear", self.output(process))
        token = self.write("pinned.token", "esp1.00000000." + "0" * 64 + "." + "0" * 64 + "\n", 0o600)
        done = subprocess.run([TUNER, "ls", "--service", self.grpc, "--token-file", token], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--plaintext", done.stderr)
        self.run_tuner("ls", "--service", self.grpc, "--token-file", self.folder / "administer.token")

    def ended_certificate(self):
        """Certificate and key, PEM files, that were good until yesterday."""
        request, certificate, key = (self.dir / name for name in ("request.pem", "ended.pem", "ended.key"))
        for command in (["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                         "-out", request, "-subj", "/CN=tuner.espalier"],
                        ["x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-out", certificate]):
            subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
        return certificate, key

    def show_certificate(self, certificate, key):
        """An address at which something shows that certificate, as a service would that was never restarted. None who calls
        waits for another."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def show(client):
            try:
                with client, context.wrap_socket(client, server_side=True) as tls:
                    tls.recv(1)
            except OSError:
                pass  # who saw it went away

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=show, args=(client,), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def test_an_ended_certificate_is_refused_with_what_to_do(self):
        certificate, key = self.ended_certificate()
        service = self.show_certificate(certificate, key)
        pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()
        token = self.write("token", f"esp1.00000000.{'1' * 64}.{pin}\n", 0o600)
        agent = self.start("agent", "--join", service, "--dir", self.dir / "n1", "--token-file", token)

        def check(said):
            self.assertIn(f"the certificate of the service at {service} ended on ", said)
            self.assertIn("restart the service, which makes a new one, and ask for a new token", said)
            self.assertNotIn("1" * 64, said)

        for command in (("ls", "--service", service), ("connect", service)):
            done = subprocess.run([TUNER, *command, "--token-file", token], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            check(done.stderr)
        wait_for(lambda: "ended on" in self.output(agent), "the agent's log")
        check(self.output(agent))

    def test_tokens_of_others_end_and_small_roles(self):
        # With a word, the kernel's word lets nobody in: as from another machine.
        word = self.write("word", "a word of ours\n", 0o600)
        self.serve_open("--token-file", word)
        administer = ("--service", self.grpc, "--token-file", self.folder / "administer.token")
        pin = (self.folder / "administer.token").read_text().strip().split(".")[3]

        def made(role, *more):
            text = self.run_tuner("token", "create", "--role", role, "--name", role + str(len(more)), *more,
                                  *administer).stdout
            return self.write(f"{role}{len(more)}.token", text, 0o600)

        def ls(path, code=0):
            done = subprocess.run([TUNER, "ls", "--service", self.grpc, "--token-file", path], capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, code == 0, done.stderr)
            return done.stderr

        ls(made("view"))
        agent = made("agent")
        self.assertIn("has the role agent", ls(agent, 1))
        foreign = self.write("foreign", "esp1.0123abcd." + "1" * 64 + "." + pin + "\n", 0o600)
        self.assertIn("none of this pool's", ls(foreign, 1))
        brief = made("view", "--expires", "1s")
        self.assertIn("ended on", wait_for(lambda: self.failure(brief), "the token to end"))

    def test_agents_are_told_at_once_what_is_wrong(self):
        word = self.write("word", "a word of ours\n", 0o600)
        # The first agent is not given up: the second of its name would be let in.
        self.serve_open("--token-file", word, "--lease", LEASE_S)
        made = self.run_tuner("token", "create", "--role", "agent", "--name", "nodes", "--service", self.grpc, "--token-file",
                              self.folder / "administer.token").stdout.strip()
        scheme, ident, secret, pin = made.split(".")
        nowhere = self.unanswered_address()
        for name, token, join, message in (
                ("good", made, self.grpc, "node n1 is number 1 of the pool"),
                ("hash", f"{scheme}.{ident}.{secret}.{'0' * 64}", self.grpc, "shows a certificate with hash " + pin[:16]),
                ("foreign", f"{scheme}.0123abcd.{'1' * 64}.{pin}", self.grpc, "none of this pool's"),
                ("nowhere", made, nowhere, f"no connection to the service at {nowhere}"),
                ("twin", made, self.grpc, 'an agent named "n1" is connected already: give this one another name, or end the '
                                          "other first")):
            agent = self.start("agent", "--join", join, "--name", "n1", "--slots", 1, "--dir", self.dir / name,
                               "--token-file", self.write(f"{name}.token", token + "\n", 0o600))
            wait_for(lambda: message in self.output(agent), f"{name}: {message}")
            self.assertNotIn(secret, self.output(agent))

    def failure(self, path):
        done = subprocess.run([TUNER, "ls", "--service", self.grpc, "--token-file", path], capture_output=True, text=True)
        return done.stderr if done.returncode else None

    def test_a_restart_keeps_tokens_and_certificate(self):
        process = self.serve_open()
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        process.terminate()
        process.wait()
        self.start("serve", "--grpc", self.address, "--db", self.dir / "pool.db")
        where = ("--service", self.grpc, "--token-file", self.folder / "administer.token")
        wait_for(lambda: subprocess.run([TUNER, "ls", *map(str, where)], capture_output=True).returncode == 0, "the service")
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)


if __name__ == "__main__":
    unittest.main()
