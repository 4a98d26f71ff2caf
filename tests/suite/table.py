"""The table of tests (table.txt): what runs in the standard suite, what in which part of the thorough one, what it costs.

A row is `TEST BUILD SUITE SECONDS NEEDS WHY`, and the lines below it that are indented name those of its cases that run,
where not all do: `Class.test_name` of Python's unittest, a pattern of GoogleTest; or, each with a `-` before it, those that do
not run. The row of a part with the same test and build then has all other cases. SUITE is `standard` or the number of a part; SECONDS are processor seconds at the speed that
the line `loop_s` names; NEEDS are what the machine must allow (machine.py), with commas between, or `-`.

Lines that begin with `budget`, `build` and `lint` say how many seconds the standard suite's tests may take, what the builds of
a suite take, and which sources the linter reads in a part.
"""
import dataclasses
import fnmatch
import pathlib
import re

PATH = pathlib.Path(__file__).parent / "table.txt"
BUILDS = ("ci", "asan", "tsan")  # presets
STANDARD = 0
SHARE_OF_A_PART = 1 / 8  # of what the standard suite costs with its builds


class TableError(Exception):
    """A line of the table that cannot be."""


@dataclasses.dataclass
class Row:
    test: str
    build: str
    part: int  # or STANDARD
    seconds: float
    needs: list
    why: str
    cases: list = dataclasses.field(default_factory=list)  # none: all, or all that the standard suite leaves; see listed()


@dataclasses.dataclass
class Table:
    rows: list
    budget: float  # processor seconds of the standard suite's tests
    loop_s: float
    build_seconds: dict  # (part or STANDARD, name of the build) -> processor seconds
    lint: dict  # part -> regular expression of sources

    def of(self, part):
        return [row for row in self.rows if row.part == part]

    def parts(self):
        return sorted({row.part for row in self.rows if row.part != STANDARD} | set(self.lint))

    def standard_cases(self, test, build):
        """Those of the test's cases that the standard suite runs in that build; [] where it runs all or none."""
        return next((row.cases for row in self.of(STANDARD) if (row.test, row.build) == (test, build)), [])

    def seconds_of(self, test, build, suite):
        """What the cases of a test take that a suite has: "standard", "rest" or "all"."""
        return sum(row.seconds for row in self.rows if (row.test, row.build) == (test, build) and
                   (suite == "all" or (row.part == STANDARD) == (suite == "standard")))

    def seconds(self, part):
        """Of its tests and builds."""
        return (sum(row.seconds for row in self.of(part)) +
                sum(seconds for (of, _), seconds in self.build_seconds.items() if of == part))


def _part(text, where):
    if text == "standard":
        return STANDARD
    if re.fullmatch("[1-9][0-9]*", text):
        return int(text)
    raise TableError(f'{where}: suite "{text}": want "standard" or the number of a part')


def _seconds(text, where):
    try:
        return float(text)
    except ValueError:
        raise TableError(f'{where}: seconds "{text}": want a number') from None


def parse(text, name="table.txt"):
    """Of the table's text. Raises TableError, which names the line."""
    table = Table([], 0, 0, {}, {})
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            if not table.rows:
                raise TableError(f'{where}: case "{line.strip()}" stands below no test')
            table.rows[-1].cases.append(line.strip())
            continue
        words = line.split(None, 5)
        if words[0] == "budget":
            table.budget = _seconds(words[1], where)
        elif words[0] == "loop_s":
            table.loop_s = _seconds(words[1], where)
        elif words[0] == "build":
            table.build_seconds[_part(words[1], where), words[2]] = _seconds(words[3], where)
        elif words[0] == "lint":
            table.lint[_part(words[1], where)] = words[2]
        elif len(words) < 6:
            raise TableError(f'{where}: "{line}": want TEST BUILD SUITE SECONDS NEEDS WHY')
        elif words[1] not in BUILDS:
            raise TableError(f'{where}: build "{words[1]}": want one of {", ".join(BUILDS)}')
        else:
            test, build, suite, seconds, needs, why = words
            table.rows.append(Row(test, build, _part(suite, where), _seconds(seconds, where),
                                  [] if needs == "-" else needs.split(","), why))
    return table


def faults(table):
    """What is wrong with it as a whole, a line each."""
    found = []
    seen = set()
    for row in table.rows:
        key = row.test, row.build, row.part == STANDARD
        if key in seen:
            found.append(f"{row.test} in {row.build} has two rows of "
                         f"{'the standard suite' if row.part == STANDARD else 'the thorough suite'}")
        seen.add(key)
        if row.part != STANDARD and row.cases:
            found.append(f"{row.test} in part {row.part} names cases: a part runs all that the standard suite leaves")
    for row in table.of(STANDARD):
        if len({case.startswith("-") for case in row.cases}) > 1:
            found.append(f"{row.test} in {row.build}: names cases that run and others, with a -, that do not: want one or the other")
        rest = (row.test, row.build, False) in seen
        if row.cases and not rest:
            found.append(f"{row.test} in {row.build}: the standard suite runs some of its cases, and no part the others")
        if not row.cases and rest:
            found.append(f"{row.test} in {row.build}: the standard suite runs all of its cases, and a part has a row of it, too")
    spent = sum(row.seconds for row in table.of(STANDARD))
    if spent > table.budget:
        found.append(f"the standard suite's tests take {spent:.0f} processor seconds, more than the budget of {table.budget:.0f}: "
                     "leave a case to a part, or make one cheaper")
    limit = SHARE_OF_A_PART * table.seconds(STANDARD)
    for part in table.parts():
        if table.seconds(part) > limit:
            found.append(f"part {part} takes {table.seconds(part):.0f} processor seconds with its builds, more than an eighth of the "
                         f"standard suite, {limit:.0f}: make it two")
        builds = {row.build for row in table.of(part)}
        if len({name for of, name in table.build_seconds if of == part}) > 1:
            found.append(f"part {part} needs more than one more build")
        if len(builds) > 1:
            found.append(f"part {part} has tests of several builds: {', '.join(sorted(builds))}")
    return found


def unlisted(table, registered):
    """What the builds register and the table does not have, and the other way round, a line each. `registered`: build -> names
    of tests."""
    found = []
    for build, names in registered.items():
        rows = {row.test for row in table.rows if row.build == build}
        found += [f"{name} is a test of {build} and has no row in tests/suite/table.txt" for name in sorted(set(names) - rows)]
        found += [f"tests/suite/table.txt has {name}, and {build} no such test" for name in sorted(rows - set(names))]
    return found


def load():
    return parse(PATH.read_text(), str(PATH.name))


def listed(cases):
    """(patterns, whether they name those that run and not those that do not) of the cases of a row."""
    return [case.removeprefix("-") for case in cases], not any(case.startswith("-") for case in cases)


def matches(pattern, case):
    """Whether a pattern of the table names the case. A class stands for all of its cases."""
    return fnmatch.fnmatchcase(case, pattern) or case.startswith(pattern + ".")
