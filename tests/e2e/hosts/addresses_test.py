"""What trials are told of where other machines reach them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import wait_for
from hosts import PORT, HostsTest

# Writes down what it was told, under its node's name.
TELL = """#!/bin/bash
env > {folder}/$HOSTS_NAME.new
mv {folder}/$HOSTS_NAME.new {folder}/$HOSTS_NAME
tuner tell --step 1 --value 1
"""


class Addresses(HostsTest):
    def told(self, *agents):
        """Starts (host, options) as agents, a trial on each; the environments of the trials."""
        folder = self.dir / "told"
        folder.mkdir()
        for host, options in agents:
            self.agent_on(host, options=options, env={"HOSTS_NAME": host.name, "ESPALIER_HOST_ADDRESS": "10.9.9.9"})
        wait_for(lambda: f"of {len(agents)} slots" in self.client("pool").stdout, "all agents")
        self.client("submit", self.study([self.write("tell.sh", TELL.format(folder=folder), 0o755)], trials=20))
        files = [folder / host.name for host, _ in agents]
        wait_for(lambda: all(f.exists() for f in files), "a trial on each host")
        return [dict(line.split("=", 1) for line in f.read_text().splitlines() if "=" in line) for f in files]

    def test_the_address_that_reaches_the_service(self):
        one, two = self.make_network(2)
        self.serve_on(one)
        told = self.told((one, ()), (two, ("--port-range", "7100-7163")))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.ip4, two.ip4])
        self.assertEqual([t["ESPALIER_INTERFACE"] for t in told], ["eth0", "eth0"])
        self.assertEqual([t.get("ESPALIER_PORT_RANGE") for t in told], [None, "7100-7163"])

    def test_ipv6(self):
        one, two = self.make_network(2)
        self.serve_on(one, one.ip6)
        told = self.told((one, ()), (two, ()))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.ip6, two.ip6])

    def test_loopback_stays_loopback(self):
        (one,) = self.make_network(1)
        self.serve_on(one, "127.0.0.1")
        (told,) = self.told((one, ()))
        self.assertEqual(told["ESPALIER_HOST_ADDRESS"], "127.0.0.1")
        self.assertNotIn("ESPALIER_INTERFACE", told)

    def test_an_agent_on_loopback_beside_other_machines_is_named(self):
        one, two = self.make_network(2)
        service = self.serve_on(one, "0.0.0.0")
        self.grpc = f"127.0.0.1:{PORT}"
        self.agent_on(one)
        wait_for(lambda: "of 1 slots" in self.client("pool").stdout, "the first agent")
        self.assertNotIn("reached at", self.client("pool").stdout)
        self.grpc = f"{one.ip4}:{PORT}"
        self.agent_on(two)
        warning = (f"replicas of node {one.name} are reached at 127.0.0.1, by its own machine alone, and node {two.name} is on "
                   f"another ({two.ip4}): have its agent join by the machine's address (tuner agent --join HOST:PORT with that "
                   "address), or give it --address")
        wait_for(lambda: warning in self.client("pool").stdout.splitlines(), "the warning")
        told = lambda: self.output(service).count(f'event=pool_warning text="{warning}"')
        wait_for(told, "the warning in the log")
        self.assertEqual(told(), 1)

    def test_network_of_the_users_choice(self):
        one, two = self.make_network(2, networks=2)
        self.serve_on(one)
        told = self.told((one, ("--interface", "eth1")), (two, ("--address", two.other_ip4)))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.other_ip4, two.other_ip4])
        self.assertEqual([t["ESPALIER_INTERFACE"] for t in told], ["eth1", "eth1"])

    def test_what_this_machine_does_not_have_is_refused(self):
        one, _ = self.make_network(2)
        self.serve_on(one)
        for option, value, message in (
                ("--address", "10.77.0.9", f"must be an address of this machine, which has .*{one.ip4} \\(eth0\\)"),
                ("--interface", "eth7", f"must be an interface of this machine .*{one.ip4} \\(eth0\\)"),
                ("--port-range", "7163-7100", "want LOW-HIGH within 1024-65535"),
                ("--port-range", "7100-7102", r"has 3 ports, and 1 slots need 5 \(4 each, and one for checkpoints\)")):
            agent = self.agent_on(one, options=(option, value))
            self.finish(agent, 2)
            self.assertRegex(self.output(agent), message)
        both = self.agent_on(one, options=("--address", one.ip4, "--interface", "eth0"))
        self.finish(both, 2)
        self.assertIn("leave one of the two out", self.output(both))


if __name__ == "__main__":
    unittest.main()
