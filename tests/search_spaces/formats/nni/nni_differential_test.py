"""Our search spaces against NNI's own validator and sampler, over generated spaces.

What NNI accepts and we do not is what NNI wrongly accepts: WRONGLY_ACCEPTED, each with what comes of
it. Draws with NNI's generator are NNI's values; draws of our own have the same distributions.
"""

import collections
import json
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, *[os.pardir] * 4))
NNI = subprocess.run([os.path.join(ROOT, "scripts", "setup-nni.sh")], check=True, capture_output=True,
                     text=True).stdout.strip()
NNI_PYTHON = os.path.join(NNI, "venv", "bin", "python")
if os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(NNI, "venv")):
    os.execv(NNI_PYTHON, [NNI_PYTHON, "-B", *sys.argv])

import numpy  # noqa: E402
import scipy.stats  # noqa: E402
from nni.algorithms.hpo.random_tuner import suggest  # noqa: E402
from nni.common.hpo_utils import deformat_parameters, format_search_space  # noqa: E402
from nni.common.hpo_utils.validation import validate_search_space  # noqa: E402

sys.path.insert(0, HERE)
from generated_spaces import generate  # noqa: E402

SPACES = 10_000
DRAWS = 5

# Our message, and what NNI does with such a space.
WRONGLY_ACCEPTED = {
    "an empty space": (r"search space is empty", "draws nothing for ever"),
    "an empty choice": (r"choice needs at least one option", "the tuner dies of an assertion"),
    "q that is not positive": (r"needs q > 0", "division by zero at the first draw; below 0: taken as positive"),
    "q without effect": (r"needs a q by which there are at most", "more steps than a number can tell apart"),
    "the same option twice": (r"needs different options", "drawn twice as often, and mistaken when resumed"),
    "the same _name twice": (r"options of different \"_name\"", "the trial cannot tell which it got"),
    "a _name that is no text": (r"\"_name\" must be a text|\"_name\" is a text that is not empty",
                                "works by chance"),
    "named and other options mixed": (r"where one option has a \"_name\"", "the object is given as it is, undrawn"),
    "truth values as numbers": (r"needs (numbers|integers of 64 bits).*, got (true|false)", "taken for 1 and 0"),
    "an integer over 64 bits": (r"integers (must be at most|of 64 bits)", "the draw fails"),
    "bounds too far apart": (r"that a double can hold|values a double can hold", "draws infinity, or the draw fails"),
    "_name as a parameter": (r"\"_name\" is the key of an option's name", "the parameter is left out"),
    "a parameter without name": (r"needs a name that is not empty", "works by chance"),
    "names that could be mistaken": (r"this name (is that of a parameter|appears twice)", "no trouble in NNI"),
    # The validator never looks into options.
    "anything within an option": (r"/_value/\d+/.*search space", "the tuner dies, or draws nonsense"),
}


def ask(questions):
    binary = os.path.join(os.environ["ESPALIER_BIN"], "space_lines")
    text = "".join(json.dumps(question) + "\n" for question in questions)
    answer = subprocess.run([binary], input=text, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def nni_accepts(space):
    try:
        return validate_search_space(space, raise_exception=True)
    except Exception:
        return False


def nni_draws(space, seed, draws):
    """What the Random tuner draws; ends with the exception where NNI fails or draws infinity."""
    formatted = format_search_space(space)
    rng = numpy.random.default_rng(seed)
    drawn = []
    try:
        for _ in range(draws):
            parameters = deformat_parameters(suggest(rng, formatted), formatted)
            json.dumps(parameters, allow_nan=False, default=float)
            drawn.append(parameters)
    except KeyError:  # a choice within an option that was not chosen
        drawn.append(KeyError)
    except (OverflowError, ValueError):
        drawn.append(OverflowError)
    return drawn


# How near a value must be: logarithms and normals have last digits of their own.
EXACT = {"choice", "randint", "uniform", "quniform"}
NEAR = {"loguniform": 1e-14, "qloguniform": 0, "normal": 1e-12, "qnormal": 0, "lognormal": 1e-11, "qlognormal": 0}


def differences(space, ours, nnis, where=""):
    """Where two trials' parameters are not the same, in order, type and value."""
    if [name for name in ours] != [name for name in nnis]:
        yield f"{where}: {ours} and {nnis}"
        return
    for name, mine in ours.items():
        theirs = nnis[name]
        if name == "_name":
            if mine != theirs:
                yield f"{where}/_name: {mine} and {theirs}"
        elif isinstance(mine, dict):
            option = next(o for o in space[name]["_value"] if o["_name"] == mine["_name"])
            yield from differences(option, mine, theirs, f"{where}/{name}")
        else:
            kind = space[name]["_type"]
            if isinstance(theirs, numpy.generic):
                theirs = theirs.item()
            tolerance = 0 if kind in EXACT else NEAR[kind] * (abs(theirs) + (1 if "normal" in kind else 0))
            same = mine == theirs if tolerance == 0 else abs(mine - theirs) <= tolerance
            if type(mine) is not type(theirs) or not same:
                yield f"{where}/{name}: {kind} {mine!r} and {theirs!r}"


class GeneratedSpaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.spaces = [generate(seed) for seed in range(SPACES)]
        cls.answers = ask({"space": json.dumps(space), "seed": seed, "draws": DRAWS}
                          for seed, space in enumerate(cls.spaces))

    def test_the_same_are_accepted_but_for_what_nni_wrongly_accepts(self):
        self.assertEqual(len(self.answers), SPACES)
        seen = collections.Counter()
        for seed, (space, answer) in enumerate(zip(self.spaces, self.answers)):
            accepted = nni_accepts(space)
            seen["NNI accepts" if accepted else "NNI refuses", "we accept" if not answer["errors"] else "we refuse"] += 1
            if not answer["errors"]:
                self.assertTrue(accepted, f"{seed}: NNI refuses {space}")
                continue
            for error in answer["errors"] if accepted else []:
                reasons = [reason for reason, (pattern, _) in WRONGLY_ACCEPTED.items() if re.search(pattern, error)]
                self.assertTrue(reasons, f"{seed}: NNI accepts {space}, we say {error}")
                seen.update(reasons)
        print(dict(seen))
        self.assertEqual([reason for reason in WRONGLY_ACCEPTED if not seen[reason]], [], "never met")
        self.assertGreater(seen["NNI accepts", "we accept"], SPACES / 2)
        self.assertGreater(seen["NNI refuses", "we refuse"], SPACES / 20)

    def test_errors_name_line_and_pointer(self):
        for answer in self.answers:
            for error in answer["errors"]:
                self.assertRegex(error, r"^line 1(, /.*)?: search space")

    def test_draws_are_those_of_nnis_random_tuner(self):
        compared = failed = 0
        for seed, (space, answer) in enumerate(zip(self.spaces, self.answers)):
            if answer["errors"]:
                continue
            nnis = nni_draws(space, seed, DRAWS)
            for ours, theirs in zip(answer["as_nni"], nnis):
                if theirs is KeyError:
                    failed += 1
                elif theirs is OverflowError:
                    self.assertIsNone(ours, f"{seed}: NNI fails for {space}")
                else:
                    self.assertIsNotNone(ours, f"{seed}: NNI draws {theirs}")
                    self.assertEqual(list(differences(space, ours, theirs)), [], f"{seed}: {space}")
                    compared += 1
        print(f"{compared} draws compared; NNI failed in {failed} spaces with choices within options")
        self.assertGreater(compared, 2 * SPACES)
        self.assertGreater(failed, 0)


class Distributions(unittest.TestCase):
    """Our own generator draws other values; they must be distributed like NNI's."""

    DRAWS = 20_000
    CONTINUOUS = {"uniform": [-2, 3], "loguniform": [1e-5, 10], "normal": [1, 2], "lognormal": [0, 1.5]}
    DISCRETE = [("choice", ["a", "b", "c"]), ("randint", [-3, 9]), ("quniform", [2, 10, 5]),
                ("quniform", [0.5, 4.2, 1]), ("qloguniform", [1, 100, 10]), ("qnormal", [0, 3, 2]),
                ("qlognormal", [1, 1, 3])]

    def draws(self, kind, values):
        space = {"x": {"_type": kind, "_value": values}}
        answer, = ask([{"space": json.dumps(space), "seed": 7, "draws": self.DRAWS}])
        self.assertEqual(answer["errors"], [])
        return ([drawn["x"] for drawn in answer["own"]],
                [drawn["x"] for drawn in nni_draws(space, 11, self.DRAWS)])

    def test_continuous_kinds(self):
        for kind, values in self.CONTINUOUS.items():
            ours, nnis = self.draws(kind, values)
            self.assertGreater(scipy.stats.ks_2samp(ours, nnis).pvalue, 1e-3, kind)

    def test_discrete_kinds(self):
        for kind, values in self.DISCRETE:
            ours, nnis = (collections.Counter(drawn) for drawn in self.draws(kind, values))
            # Rare values are taken together, as the test wants some of each.
            common = [value for value in ours | nnis if ours[value] + nnis[value] >= 20]
            self.assertEqual({type(value) for value in ours}, {type(value) for value in nnis}, kind)
            table = [[counts[value] for value in common] + [self.DRAWS - sum(counts[value] for value in common) + 1]
                     for counts in (ours, nnis)]
            self.assertGreater(scipy.stats.chi2_contingency(table).pvalue, 1e-3, (kind, values))


if __name__ == "__main__":
    unittest.main()
