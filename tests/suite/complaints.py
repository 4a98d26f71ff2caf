"""What a failed run complains of, in a few lines for the end of the output: whoever shows a long log may leave its middle out."""
import re

# What says which case failed, and why, of GoogleTest, unittest, sanitizers, the C++ library and CTest.
_TELLING = re.compile(r"\[  FAILED  \] \w|: Failure$|^(?:FAIL|ERROR): |^\w[\w.]*(?:Error|Exception)\b|SUMMARY: \w+Sanitizer|"
                      r"^terminate called|^Assertion .*failed|\*\*\*(?:Failed|Timeout|Exception)")
_AFTER_FAILURE = 4  # lines in which GoogleTest says what was expected
MOST_LINES, MOST_CHARACTERS = 20, 200


def of_log(text):
    """Lines of the log, each once, in their order."""
    lines, found, more = text.splitlines(), {}, 0
    for line in lines:
        telling = _TELLING.search(line)
        if telling or (more and line.strip()):
            found[line.strip()[:MOST_CHARACTERS]] = None
        more = _AFTER_FAILURE if telling and telling[0] == ": Failure" else max(0, more - 1)
    kept = list(found)
    return kept if len(kept) <= MOST_LINES else [*kept[:MOST_LINES], f"and {len(kept) - MOST_LINES} lines more"]
