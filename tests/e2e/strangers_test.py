#!/usr/bin/env python3
"""What strangers cost a service who send gRPC's port headers without end: no memory, and nobody's answers."""
import pathlib
import re
import socket
import ssl
import sys
import threading
import unittest
import urllib.request

from harness import PATIENCE_S, ROOT, TunerTest

sys.path.insert(0, str(ROOT / "tests/benchmarks"))
from stranger_crowd import BLIND, HTTP2_KINDS, KINDS  # noqa: E402

MEBIBYTE = 1 << 20
ENDLESS = 24 * MEBIBYTE  # which a service that takes them all would have to hold
MOST = 16 * MEBIBYTE  # that a service may grow
AT_ONCE = 4  # strangers of a kind


def resident(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


class Strangers(TunerTest):
    def setUp(self):
        super().setUp()
        # With a word, the kernel's word lets nobody in: as from another machine.
        self.word = self.write("word", "a word of ours\n", 0o600)

    def serve_at(self, address):
        process = self.start("serve", "--grpc", address, "--http", "127.0.0.1:0", "--db", self.dir / "pool.db", "--token-file",
                             self.word)
        self.http = self.told_address(process, "HTTP")
        self.grpc = f"127.0.0.1:{self.told_address(process, 'gRPC').rpartition(':')[2]}"
        return process

    def said_until_cut_off(self, kind, tls):
        """How many bytes a stranger of that kind can send."""
        first, more = KINDS[kind]
        host, port = self.grpc.split(":")
        said = 0
        try:
            with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as one:
                with BLIND.wrap_socket(one) if tls else one as stranger:
                    stranger.sendall(first)
                    while said < ENDLESS:
                        stranger.sendall(more)
                        said += len(more)
        except (ConnectionError, ssl.SSLError):
            pass
        return said

    def check_all_kinds(self, process, tls, token):
        """Each is cut off, while others are answered."""
        where = ("--service", self.grpc, "--token-file", token)
        self.run_tuner("ls", *where)
        before = resident(process)
        said = {}

        def try_one(name, kind):
            said[name] = self.said_until_cut_off(kind, tls)
        for kind in HTTP2_KINDS:
            if not KINDS[kind][1]:
                continue  # says nothing more
            threads = [threading.Thread(target=try_one, args=(f"{kind} {i}", kind)) for i in range(AT_ONCE)]
            for thread in threads:
                thread.start()
            with urllib.request.urlopen(f"http://{self.http}/healthz", timeout=PATIENCE_S) as answer:
                self.assertEqual(answer.read(), b"ok\n")
            for thread in threads:
                thread.join()
        self.run_tuner("ls", *where)
        self.assertEqual({name: bytes_ for name, bytes_ in said.items() if bytes_ >= ENDLESS}, {}, "not cut off")
        self.assertEqual(len(said), AT_ONCE * 6)
        self.assertLess(resident(process) - before, MOST, "bytes more")

    def test_headers_without_end_in_the_clear(self):
        self.check_all_kinds(self.serve_at("127.0.0.1:0"), False, self.word)

    def test_headers_without_end_over_tls(self):
        process = self.serve_at("0.0.0.0:0")
        self.check_all_kinds(process, True, self.dir / "pool.db.credentials" / "administer.token")


if __name__ == "__main__":
    unittest.main()
