"""What a trial's program reports and says, in a test that has a process to itself."""
import contextlib
import os
import re
import sys
import tempfile


class Said:
    reports = ()  # (step, value, {name: figure}), as texts
    stderr = ""


@contextlib.contextmanager
def listened():
    """Gives a Said, which is filled when the context ends: what the process and its library print goes into it."""
    said, saved = Said(), {}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            for number, file, stream in ((1, out, sys.stdout), (2, err, sys.stderr)):
                stream.flush()
                saved[number] = os.dup(number)
                os.dup2(file.fileno(), number)
            yield said
        finally:
            for number, stream in ((1, sys.stdout), (2, sys.stderr)):
                stream.flush()
                os.dup2(saved[number], number)
            out.seek(0)
            err.seek(0)
            said.stderr = err.read()
            found = re.findall(r"^report step=(\d+) value=(\S+)(.*)$", out.read(), re.MULTILINE)
            said.reports = [(int(step), value, dict(figure.split("=") for figure in more.split()))
                            for step, value, more in found]
