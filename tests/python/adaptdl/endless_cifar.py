"""The loop of examples/python_adaptdl/cifar.py, which goes on until a file is there. usage: endless_cifar.py FILE"""
import pathlib
import runpy
import sys
from time import sleep as pause

import adaptdl.torch as adl
from espalier.torch import evaluate

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples/python_adaptdl/cifar.py"
end = pathlib.Path(sys.argv[1])
remaining_epochs_until = adl.remaining_epochs_until


def epochs_until_the_end(_):
    for epoch in remaining_epochs_until(100_000):
        yield epoch
        pause(0.5)  # others need the processors
        # All have to come to the same answer: so it goes through a sum.
        if evaluate(lambda _: {"end": end.exists()}, 1, 1)["end"]:
            break


adl.remaining_epochs_until = epochs_until_the_end
sys.argv = [str(EXAMPLE)]
sys.path.insert(0, str(EXAMPLE.parent))
runpy.run_path(str(EXAMPLE), run_name="__main__")
