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

    def ask(self, host, address, port=7000, patience_s=60):
        return host.run(sys.executable, "-c", ASK, address, port, patience_s).split()

    def check(self, host, address, expected, port=7000, fault=""):
        """A kernel that has lost its first packet sends the next one after a second, so who answers has time to."""
        how = self.ask(host, address, port, 1 if expected == "silent" else 60)[0]
        self.assertEqual(how, expected, f"{fault} {address}")

    def test_hosts_reach_each_other_and_nothing_else(self):
        one, two = self.make_network(2, networks=2)
        for address in (one.ip4, one.ip6, one.other_ip4, one.other_ip6):
            self.answerer(one, address)
            self.check(two, address, "answered")
        self.assertEqual(one.run("ip", "-o", "route", "show", "default"), "")

    def test_faults(self):
        one, two = self.make_network(2)
        for host in (one, two):
            self.answerer(host, host.ip4)

        def both(from_one, from_two, fault=""):
            self.check(one, two.ip4, from_one, fault=fault)
            self.check(two, one.ip4, from_two, fault=fault)
        for fault, *expected in ((one.refuse, "answered", "refused"), (one.shut, "answered", "silent"),
                                 (one.deafen, "silent", "silent"), (one.cut, "silent", "silent")):
            fault(two)
            both(*expected, fault=fault.__name__)
            self.network.mend()
            both("answered", "answered", fault=f"after {fault.__name__}")
        one.firewall("7100-7163")
        both("answered", "silent", fault="firewall")
        self.answerer(one, one.ip4, 7163)
        self.check(two, one.ip4, "answered", 7163)
        one.mend()
        one.lose(99.999999)
        both("silent", "silent", fault="loss")

    def test_partition_of_four(self):
        a, b, c, d = self.make_network(4)
        for host in (a, b, c, d):
            self.answerer(host, host.ip4)
        self.network.partition([a, b], [c, d])
        for host, expected in ((b, "answered"), (c, "silent"), (d, "silent")):
            self.check(a, host.ip4, expected)
        self.check(d, c.ip4, "answered")

    def test_relay_delays_and_shaping_slows(self):
        one, two = self.make_network(2, delay_ms=20, rate_mbit=40)
        for address in (one.ip4, one.ip6):
            self.answerer(one, address, size=4_000_000)
            how, seconds, size = self.ask(two, address)
            self.assertEqual((how, int(size)), ("answered", 4_000_000))
            # Three times over the wire before the first byte is there; then 32 of 40 Mbit a second.
            self.assertGreater(float(seconds), 0.06 + 0.5)


if __name__ == "__main__":
    unittest.main()
