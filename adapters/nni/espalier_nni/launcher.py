"""What the launcher of NNI 3.0 does at the start of an experiment that ours do without.

NNI's manager asks a new Python where the registered services are, which imports NNI once more: two seconds before the
tuner starts. The launcher knows, so it tells by `module/registry.js`, which node loads first. And the launcher wants a
second port for "adl", where nothing of ours listens.
"""
import contextlib
import json
import os

from nni.experiment import launcher as nni_launcher

from espalier_nni import registration

PRELOADED = registration.MODULE_PATH.with_name("registry.js")
REGISTRY = "ESPALIER_NNI_REGISTRY"


def install():
    """Once for this process."""
    if getattr(nni_launcher, "_espalier_nni", False):
        return
    nni_launcher._espalier_nni = True
    start, port_idle = nni_launcher._start_rest_server, nni_launcher._ensure_port_idle

    def start_rest_server(arguments, run_mode):
        if arguments.mode not in registration.PACKAGES or " " in str(PRELOADED):
            return start(arguments, run_mode)
        with _environment(NODE_OPTIONS=f"{os.environ.get('NODE_OPTIONS', '')} --require={PRELOADED}".strip(),
                          **{REGISTRY: json.dumps(registration.read())}):
            return start(arguments, run_mode)

    def ensure_port_idle(port, message=None):
        if message is None or not message.startswith("adl "):
            port_idle(port, message)

    nni_launcher._start_rest_server, nni_launcher._ensure_port_idle = start_rest_server, ensure_port_idle


@contextlib.contextmanager
def _environment(**variables):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
