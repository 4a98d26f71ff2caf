"""A real Ray cluster with token authentication, in a network namespace of the test's own, whose processes end with it."""
import atexit
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from hosts import run_inside  # noqa: E402
from harness import PATIENCE_S, wait_for  # noqa: E402

ADDRESS = "10.78.0.1"  # of this machine, in its namespace
CLIENT_PORT, DASHBOARD_PORT = 10001, 8265


def prepare(file, **variables):
    """Goes on in namespaces, with a network that Ray takes for one, and a token; with further variables for Ray. Before Ray
    is imported."""
    run_inside(file)
    for words in ("link set lo up", "link add ray0 type veth peer name ray1", f"addr add {ADDRESS}/24 dev ray0",
                  "link set ray0 up", "link set ray1 up", "route add default dev ray0"):
        subprocess.run(["ip", *words.split()], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-ray-test-"))
    atexit.register(shutil.rmtree, folder, True)
    token = folder / "ray.token"
    token.write_text(secrets.token_hex(32))
    # Where nodes find `tuner`.
    os.environ["PATH"] = f"{os.environ['ESPALIER_BIN']}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token),
                   "RAY_TMPDIR": str(folder), "RAY_USAGE_STATS_ENABLED": "0",
                   # On a loaded machine Ray's own 5 s to 60 s are too few, and it starts actors below all else that runs.
                   "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": str(PATIENCE_S),
                   "RAY_gcs_server_port_wait_time_s": str(PATIENCE_S),
                   "RAY_gcs_rpc_server_connect_timeout_s": str(PATIENCE_S),
                   "RAY_raylet_start_wait_time_s": str(PATIENCE_S),
                   "RAY_agent_register_timeout_ms": str(1000 * PATIENCE_S),
                   "RAY_DASHBOARD_STARTUP_TIMEOUT_S": str(PATIENCE_S),
                   "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": str(PATIENCE_S),
                   "RAY_worker_niceness": "0"} | variables
    os.environ.pop("RAY_ADDRESS", None)
    return folder


def patient(get_node):
    """Ray's function that tells of a node, which who starts one asks for 30 s only."""
    def get(*arguments):
        def node():
            try:
                return get_node(*arguments)
            except RuntimeError:  # it has not registered yet
                return None
        return wait_for(node, "Ray's node to start")
    return get


class RayCluster:
    """A head without CPUs, and machines (raylets) of two CPUs each. The dashboard is what takes jobs."""

    def __init__(self, machines, dashboard=False):
        from ray._private import services
        from ray.cluster_utils import Cluster
        services.get_node = patient(services.get_node)
        self._cluster = Cluster()
        self._start(num_cpus=0, include_dashboard=dashboard, dashboard_host=ADDRESS, dashboard_port=DASHBOARD_PORT,
                    ray_client_server_port=CLIENT_PORT)
        self.address = self._cluster.address
        self.client_address = f"ray://{ADDRESS}:{CLIENT_PORT}"
        self.machines = []
        self._added = 0
        for _ in range(machines):
            self.add()

    def add(self):
        # As real ones, each has a folder of its own: Ray takes what it finds in one for its own.
        self._added += 1
        folder = pathlib.Path(os.environ["RAY_TMPDIR"]) / str(self._added)
        self.machines.append(self._start(num_cpus=2, num_gpus=2, temp_dir=str(folder)))

    def _start(self, **node):
        started = self._cluster.add_node(wait=False, **node)  # which would wait for 30 s
        self._cluster.wait_for_nodes(PATIENCE_S)
        return started

    def kill(self, machine):
        """As where a machine is lost: its raylet dies, and what it runs."""
        self.machines.remove(machine)
        self._cluster.remove_node(machine, allow_graceful=False)

    def notice(self, machine):
        """Tells Ray that the machine is gone, which it else finds out by itself after a while."""
        from ray._private.grpc_utils import init_grpc_channel
        from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc
        gone = gcs_service_pb2.UnregisterNodeRequest(node_id=bytes.fromhex(machine.node_id))
        with init_grpc_channel(self.address) as channel:
            gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel).UnregisterNode(gone, timeout=PATIENCE_S)

    def close(self):
        self._cluster.shutdown()
