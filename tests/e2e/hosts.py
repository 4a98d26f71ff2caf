"""Hosts of a test's own: network namespaces on one or two networks, with faults between them.

`run_inside(__file__)` at the top of a test starts it again in namespaces of its own (as root, else in a user
namespace): networks, hosts and processes are nobody else's, and end with the test however it ends.

    self.network = Network(2)                 # or Network(2, delay_ms=1): through the relay instead of a bridge
    one, two = self.network.hosts             # 10.77.0.1 and fd77::1, 10.77.0.2 and fd77::2; each with a folder
    self.serve_on(one)
    self.agent_on(two, slots=1)
    two.cut(one)                              # and refuse, shut, lose, firewall, mend; rate_mbit of Network
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

from harness import BIN, TUNER, TunerTest, wait_for

INSIDE = "ESPALIER_TEST_HOSTS"
RUN = pathlib.Path("/run/espalier-hosts")  # of the private mount namespace
PORT = 7077
HTTP_PORT = 7078
TABLE = "inet faults"
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")  # before a command


def unshared(*command):
    """The command as the first process of namespaces that it owns. What it mounts may be seen outside until own_mounts()."""
    # Without "unchanged" this asks for private mounts at once, which fails in a chroot: see own_mounts().
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--net", "--mount", "--propagation", "unchanged", "--pid", "--fork", "--kill-child", *user, *command]


def run_inside(file):
    """Goes on in private namespaces; does not return to who called it from outside."""
    if os.environ.get(INSIDE):
        return
    probe = subprocess.run(unshared("true"), capture_output=True, text=True)
    if probe.returncode != 0:
        sys.exit(f"network namespaces need root or user namespaces: {probe.stderr.strip()}")
    command = unshared(sys.executable, os.path.abspath(__file__), file, *sys.argv[1:])
    os.execvp(command[0], command)


def own_mounts():
    """From here on nobody outside sees what this process and its children mount, and /proc shows their processes."""
    if subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode != 0:
        # In a chroot the root is a folder within a mount, which has no path in here, so that nothing can make it private.
        # /proc is a mount in every chroot: all of the root is shown there, as a mount that can be, and becomes the root.
        folder = os.getcwd()
        sh("mount", "--make-rprivate", "/proc")
        sh("mount", "--rbind", "/", "/proc")
        os.chroot("/proc")
        os.chdir(folder)
        sh("mount", "--make-rprivate", "/")
    sh("mount", "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc")


def be_init(command):
    """The first process of the namespace: runs the test, and takes in orphans that end."""
    try:
        own_mounts()
    except (AssertionError, OSError) as error:
        sys.exit(f"this machine does not let a mount namespace have mounts of its own: {error}")
    child = subprocess.Popen(command, env=dict(os.environ, **{INSIDE: "1"}))
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, _: child.send_signal(number))
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def sh(*words, text=None):
    done = subprocess.run([str(w) for w in words], input=text, text=True, capture_output=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}\n{text or ''}{done.stdout}{done.stderr}")
    return done.stdout


def can_be_nobody():
    """Not in a user namespace, where there is nobody else."""
    return subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode == 0


def new_namespace(name):
    """A network namespace that lives as long as its file is mounted: /run/espalier-hosts/NAME."""
    path = RUN / name
    path.touch()
    sh("unshare", f"--net={path}", "true")
    return path


class Host:
    def __init__(self, number, folder):
        self.number = number
        self.name = f"host{number}"
        self.folder = folder / self.name
        (self.folder / "home").mkdir(parents=True)
        self.ip4, self.ip6 = f"10.77.0.{number}", f"fd77::{number}"
        # On the second network, where there is one.
        self.other_ip4, self.other_ip6 = f"10.78.0.{number}", f"fd78::{number}"
        self.namespace = new_namespace(self.name)
        self.rules = {"in": [], "out": []}
        self.run("ip", "link", "set", "lo", "up")

    def prefix(self):
        """Before a command that is to run on this host."""
        return ["nsenter", f"--net={self.namespace}"]

    def environment(self):
        return {"HOME": str(self.folder / "home")}

    def run(self, *words, text=None):
        return sh(*self.prefix(), *words, text=text)

    def set_address(self, device, ip4, ip6):
        self.run("ip", "addr", "add", f"{ip4}/24", "dev", device)
        self.run("ip", "addr", "add", f"{ip6}/64", "dev", device, "nodad")
        self.run("ip", "link", "set", device, "up")

    def addresses(self):
        return {"ip": (self.ip4, self.other_ip4), "ip6": (self.ip6, self.other_ip6)}

    # Faults. They add up until mend(); all count at the one side that they are called on.

    def cut(self, *others):
        """Nothing passes in either direction."""
        for other in others:
            self._rule("in", other, "saddr", "drop")
            self._rule("out", other, "daddr", "drop")

    def deafen(self, *others):
        """What they send vanishes; what this host sends arrives."""
        for other in others:
            self._rule("in", other, "saddr", "drop")

    def shut(self, *others):
        """New connections from them vanish, as in a firewall; those from here to them, and those there are, work."""
        for other in others:
            self._rule("in", other, "saddr", "drop", "tcp flags & (syn | ack) == syn")

    def refuse(self, *others):
        """New connections from them are refused at once; otherwise as shut."""
        for other in others:
            self._rule("in", other, "saddr", "reject with tcp reset", "tcp flags & (syn | ack) == syn")

    def lose(self, percent):
        """So many of a hundred packets that arrive are lost; less than 100."""
        most = 10 ** 9
        self.rules["in"].append(f"meta iifname != lo numgen random mod {most} < {round(percent / 100 * most)} drop")
        self._apply()

    def firewall(self, *ports):
        """New connections from elsewhere arrive at these ports ("7100-7163") alone."""
        allowed = ", ".join(str(p) for p in ports)
        self.rules["in"].append(
            f"meta iifname != lo tcp flags & (syn | ack) == syn tcp dport != {{ {allowed} }} counter drop")
        self._apply()

    def mend(self):
        self.rules = {"in": [], "out": []}
        self._apply()

    def _rule(self, chain, other, end, verdict, match=""):
        for family, addresses in other.addresses().items():
            for address in addresses:
                self.rules[chain].append(f"{family} {end} {address} {match} {verdict}")
        self._apply()

    def _apply(self):
        def chain(name, hook):
            rules = "\n".join(self.rules[name])
            return f"chain {name} {{\ntype filter hook {hook} priority 0\n{rules}\n}}\n"
        self.run("nft", "-f", "-", text=f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n"
                 f"{chain('in', 'input')}{chain('out', 'output')}}}\n")


class Network:
    """Hosts that reach one another: over a bridge, or with a delay through the relay.

    rate_mbit shapes what each host sends. networks=2: each host has a second interface, eth1, on a network of its own.
    """

    def __init__(self, count, folder, delay_ms=0, rate_mbit=0, networks=1):
        prepare()
        self.hosts = [Host(number, folder) for number in range(1, count + 1)]
        self.relay = None
        if delay_ms:
            self._relay(delay_ms)
        else:
            self._bridge("eth0", lambda h: (h.ip4, h.ip6))
        if networks == 2:
            self._bridge("eth1", lambda h: (h.other_ip4, h.other_ip6))
        if rate_mbit:
            for host in self.hosts:
                # A burst of a few milliseconds; a queue that TCP fills and no more.
                burst_kb = max(64, rate_mbit * 4 // 8)
                host.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{rate_mbit}mbit",
                         "burst", f"{burst_kb}kb", "latency", "20ms")

    def _bridge(self, device, addresses):
        bridge = f"br-{device}"
        sh("ip", "link", "add", bridge, "type", "bridge")
        sh("ip", "link", "set", bridge, "up")
        for host in self.hosts:
            port = f"{device}-{host.number}"
            sh("ip", "link", "add", port, "type", "veth", "peer", "name", device, "netns", host.namespace)
            sh("ip", "link", "set", port, "master", bridge, "up")
            host.set_address(device, *addresses(host))

    def _relay(self, delay_ms):
        devices = [f"{h.namespace},eth0,{h.ip4},{h.ip6}" for h in self.hosts]
        self.relay = subprocess.Popen([str(BIN / "delay_relay"), str(int(delay_ms * 1000)), *devices],
                                      stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline().strip() != "ready":
            raise AssertionError("the relay does not start")
        for host in self.hosts:
            host.run("ip", "link", "set", "eth0", "mtu", "9000")
            host.set_address("eth0", host.ip4, host.ip6)

    def partition(self, *groups):
        """Hosts of different groups do not reach each other."""
        for group in groups:
            for host in group:
                host.cut(*(other for g in groups if g is not group for other in g))

    def mend(self):
        for host in self.hosts:
            host.mend()

    def remove(self):
        """All of it, so that the next test begins with none."""
        if self.relay:
            self.relay.kill()
            self.relay.communicate()
        for host in self.hosts:
            sh("umount", host.namespace)
            host.namespace.unlink()
        for device in ("br-eth0", "br-eth1"):
            subprocess.run(["ip", "link", "del", device], capture_output=True)
        # A namespace goes when its last process has gone, and takes its end of the cables along; the
        # other ends are removed here, as the next test's have the same names.
        for device in _links():
            if device.startswith(("eth0-", "eth1-")):
                subprocess.run(["ip", "link", "del", device], capture_output=True)


def _links():
    return [line.split(":")[1].split("@")[0].strip() for line in sh("ip", "-o", "link").splitlines()]


def prepare():
    """Once in a test's namespaces: a folder for the hosts' that others do not see."""
    if RUN.is_dir():
        return
    sh("mount", "-t", "tmpfs", "tmpfs", "/run")
    RUN.mkdir()
    sh("ip", "link", "set", "lo", "up")


class HostsTest(TunerTest):
    """TunerTest with processes on hosts. Clients run on the service's host."""

    network = None
    join_token = None  # what agents show; none: what clients do

    def make_network(self, count, **keys):
        self.network = Network(count, self.dir, **keys)
        return self.network.hosts

    def tearDown(self):
        super().tearDown()
        if self.network:
            self.network.remove()

    def on(self, host, **keys):
        keys["prefix"] = host.prefix()
        keys["env"] = dict(host.environment(), **keys.get("env", {}))
        return keys

    def serve_on(self, host, address=None, options=()):
        """A service at the host's address; clients find it by `self.grpc` and what `where()` gives."""
        self.service_host = host
        address = address or host.ip4
        shown = f"[{address}]" if ":" in address else address
        self.grpc, self.http = f"{shown}:{PORT}", f"{shown}:{HTTP_PORT}"
        self.token = self.write("token", "0123456789abcdef0123456789abcdef\n", 0o600)
        process = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", host.folder / "pool.db",
                             "--token-file", self.token, "--plaintext", *options, **self.on(host))
        self.wait_service(process)
        return process

    def serve_tls_on(self, host, options=()):
        """As serve_on, but as a pool is meant to be: over TLS, with the service's own certificate and tokens."""
        self.service_host = host
        self.grpc, self.http = f"{host.ip4}:{PORT}", f"{host.ip4}:{HTTP_PORT}"
        self.credentials = host.folder / "pool.db.credentials"
        self.token, self.join_token = self.credentials / "administer.token", self.credentials / "join.token"
        process = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", host.folder / "pool.db",
                             *options, **self.on(host))
        self.wait_service(process)
        return process

    def agent_on(self, host, slots=1, name=None, options=(), **keys):
        return self.start("agent", "--join", self.grpc, "--http", self.http, "--slots", slots, "--name",
                          name or host.name, "--dir", host.folder / "agent", "--token-file",
                          self.join_token or self.token, *options, **self.on(host, **keys))

    def client(self, *arguments, **keys):
        """A client's verb, on the service's host."""
        env = dict(keys.pop("env", {}), ESPALIER_TOKEN_FILE=self.token)
        return self.run_tuner(*arguments, "--service", self.grpc, **self.on(self.service_host, env=env), **keys)

    def exported(self, study="e2e"):
        return json.loads(self.client("export", study, "--format", "json").stdout)

    def wait_service(self, process):
        def answers():
            self.assertIsNone(process.poll(), self.output(process))
            command = [*self.service_host.prefix(), TUNER, "ls", "--service", self.grpc, "--token-file", self.token]
            return subprocess.run(command, capture_output=True).returncode == 0
        wait_for(answers, "the service to answer")

    def trial(self, index=0):
        trials = self.exported()["trials"]
        return trials[index] if len(trials) > index else None

    def listening_ports(self, host):
        """TCP ports that anything on the host listens at, beside loopback's."""
        ports = set()
        for line in host.run("ss", "-Htln").splitlines():
            address, port = line.split()[3].rsplit(":", 1)
            if not address.startswith(("127.", "[::1]")):
                ports.add(int(port))
        return ports


if __name__ == "__main__":
    sys.exit(be_init([sys.executable, *sys.argv[1:]]))
