"""NNI inside an elastic trial: what its `report_*` calls send goes by the trial, so that each replica may make them, as
each runs the whole script. This file does without NNI; _nni_channel.py is what NNI loads."""
import os
import sys

from espalier.checkpoint import State

_URL = "NNI_TRIAL_COMMAND_CHANNEL"
_reports = None


class Reports(State):
    """How many intermediate results the trial has reported. A replica that joins goes on counting from there."""

    def __init__(self):
        super().__init__("espalier.nni")

    def save(self, fileobj):
        # NNI counts them itself, by process.
        nni = sys.modules.get("nni.trial")
        fileobj.write(str(nni._intermediate_seq if nni is not None else 0).encode())

    def load(self, fileobj):
        nni = sys.modules.get("nni.trial")
        if nni is not None:
            nni.overwrite_intermediate_seq(int(fileobj.read()))


def install():
    """Makes the trial NNI's channel, if this process is a trial of an NNI experiment on Espalier."""
    global _reports
    on_espalier = os.environ.get("NNI_PLATFORM") == "espalier" and "ESPALIER_CONTROL_FD" in os.environ
    if not on_espalier or _reports is not None:
        return
    _reports = Reports()
    os.environ[_URL] = "import://espalier._nni_channel.Channel"
    if "nni" in sys.modules:  # it has read its variables already
        from nni.runtime.trial_command_channel import set_default_trial_command_channel

        from espalier._nni_channel import Channel
        set_default_trial_command_channel(Channel())
