"""The hosts that other tests use: who reaches whom, and what each fault does."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import subprocess
import unittest

from hosts import HostsTest

# On one host answers each connection with a byte; on another connects, and says how it went and how long it took. That
# nothing is answered shows as the kernels, which no busy processor holds up, connect: the answer itself may take its time.
ANSWER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"x" * int(sys.argv[3]))
    c.close()
"""
ASK = """
import socket, sys, time
began = time.monotonic()
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
    s.settimeout(60)
    size = 0
    while got := s.recv(1 << 20):
        size += len(got)
    print(f"answered {time.monotonic() - began} {size}")
except ConnectionRefusedError:
    print("refused")
except TimeoutError:
    print("silent")
"""


class NetworkTest(HostsTest):
    def answerer(self, host, address, port=7000, size=1):
        process = subprocess.Popen([*host.prefix(), sys.executable, "-c", ANSWER, address, str(port), str(size)],
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "ready\n")

    def ask(self, host, address, port=7000, patience_s=1):
        return host.run(sys.executable, "-c", ASK, address, port, patience_s).split()

    def test_hosts_reach_each_other_and_nothing_else(self):
        one, two = self.make_network(2, networks=2)
        for address in (one.ip4, one.ip6, one.other_ip4, one.other_ip6):
            self.answerer(one, address)
            self.assertEqual(self.ask(two, address)[0], "answered", address)
        self.assertEqual(one.run("ip", "-o", "route", "show", "default"), "")

    def test_faults(self):
        one, two = self.make_network(2)
        for host in (one, two):
            self.answerer(host, host.ip4)
        both = lambda: (self.ask(one, two.ip4)[0], self.ask(two, one.ip4)[0])
        for fault, expected in ((one.refuse, ("answered", "refused")), (one.shut, ("answered", "silent")),
                                (one.deafen, ("silent", "silent")), (one.cut, ("silent", "silent"))):
            fault(two)
            self.assertEqual(both(), expected, fault.__name__)
            self.network.mend()
            self.assertEqual(both(), ("answered", "answered"))
        one.firewall("7100-7163")
        self.assertEqual(both(), ("answered", "silent"))
        self.answerer(one, one.ip4, 7163)
        self.assertEqual(self.ask(two, one.ip4, 7163)[0], "answered")
        one.mend()
        one.lose(99.999999)
        self.assertEqual(both(), ("silent", "silent"))

    def test_partition_of_four(self):
        a, b, c, d = self.make_network(4)
        for host in (a, b, c, d):
            self.answerer(host, host.ip4)
        self.network.partition([a, b], [c, d])
        self.assertEqual([self.ask(a, h.ip4)[0] for h in (b, c, d)], ["answered", "silent", "silent"])
        self.assertEqual(self.ask(d, c.ip4)[0], "answered")

    def test_relay_delays_and_shaping_slows(self):
        one, two = self.make_network(2, delay_ms=20, rate_mbit=40)
        for address in (one.ip4, one.ip6):
            self.answerer(one, address, size=4_000_000)
            how, seconds, size = self.ask(two, address, patience_s=60)
            self.assertEqual((how, int(size)), ("answered", 4_000_000))
            # Three times over the wire before the first byte is there; then 32 of 40 Mbit a second.
            self.assertGreater(float(seconds), 0.06 + 0.5)


if __name__ == "__main__":
    unittest.main()
