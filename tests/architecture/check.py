#!/usr/bin/env python3
"""Holds the tree to rules.py: include walls, banned calls, names, lengths, types, lists of values,
circles of includes and imports, folders of tests, unregistered tests, fields of messages that nobody uses, the table of
docs/dependencies.md that tells readers who may include whom, and the subjects of commits.

usage: check.py [--figures] [ROOT]     prints one line a violation; exit status 1 when there is one.
With --figures it prints, as one JSON object, what figures.py and submits.py count.
"""

import json
import posixpath
import re
import sys
from functools import cached_property
from pathlib import Path

import annotations
import cpp
import figures
import history
import links
import proto
import rules
import submits

CODE = {".cc", ".cu", ".h"}
PAGES = {".ts", ".tsx"}
SCANNED = CODE | PAGES | {".py"}
# Build outputs, downloads, the demo's record; and whatever is hidden.
SKIPPED = {"build", "demo", "__pycache__", "node_modules"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
RAW_STRING = r'R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"'
C_NOISE = re.compile(RAW_STRING + r"""|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""",
                     re.DOTALL)
PY_NOISE = re.compile(r'"{3}.*?"{3}|\'{3}.*?\'{3}|\#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                      re.DOTALL)


def is_below(path, place):
    return path == place or path.startswith(place + "/")


def folder_of(name):
    """The row of rules.FOLDERS that a file belongs to: the longest that holds it."""
    rows = [row for row in rules.FOLDERS if is_below(name, row)]
    return max(rows, key=len, default=None)


def is_in(path, places):
    """Whether the path is one of the places or below one ("*": any). A folder does not stand for
    those below it that have a row of their own."""
    row = folder_of(path) or ""
    return any(place == "*" or (is_below(path, place) and len(place) >= len(row))
               for place in places)


def may_see(name, row, kinds):
    """Whether a file may include what is behind a wall: a test also where what it mirrors may."""
    if is_in(name, [place for kind in kinds for place in row[kind]]):
        return True
    for tests, mirrored in rules.MIRRORS.items():
        rest = name.removeprefix(tests)
        if rest != name and any(is_in(folder + rest, row["sources"]) for folder in mirrored):
            return True
    return name.startswith("tests/") and is_in(name, row["sources"])


def without_noise(text, suffix):
    """The code with comments and strings blanked and the line numbers kept. Includes stay."""
    def blank(match):
        return "\n" * match[0].count("\n")
    if suffix in PAGES:
        return text  # texts between tags have quotes that close nothing
    if suffix not in CODE:
        return PY_NOISE.sub(blank, text)
    # Quoted includes look like strings; they are checked on their own.
    return C_NOISE.sub(blank, text)


def without_comments(text):
    """The code of a C++ source with comments blanked and each text an empty one."""
    def blank(match):
        value = {"/": "", "'": "0"}.get(match[0][0], '""')
        return value + "\n" * match[0].count("\n")
    return C_NOISE.sub(blank, text)


# Where readers find rules.FOLDERS: a table with one row a folder, whose last cell lists what it may
# include.
PAGE = "docs/dependencies.md"
PAGE_ROW = re.compile(r"^\| `([\w/]+)` \|.*\| ([^|]*?) ?\|$", re.MULTILINE)


def page_cell(folder):
    """What the page says that a folder may include."""
    seen = rules.FOLDERS[folder]
    return "everything" if "*" in seen else ", ".join(seen) or "nothing of ours"


def page_table():
    """The rows that the page must have, without what each folder is."""
    return "".join(f"| `{folder}` | | {page_cell(folder)} |\n" for folder in rules.FOLDERS)


class Tree:
    """The source files below a root, and what each includes, directly and in the end."""

    def __init__(self, root):
        self.root = Path(root)
        self.text = {}
        self.paths = []
        for path in sorted(self._walk(self.root)):
            name = path.relative_to(self.root).as_posix()
            self.paths.append(name)
            if path.suffix in SCANNED and not any(is_below(name, place) for place in rules.NOT_SCANNED):
                self.text[name] = path.read_text(encoding="utf-8", errors="replace")
        self.includes = {name: self._includes_of(name) for name in self.text
                         if Path(name).suffix in CODE}
        # {"tuner.pb.h": the folder of its .proto}
        self.generated = {Path(name).stem + kind: name.rpartition("/")[0] for name in self.paths
                          if name.endswith(".proto") for kind in (".pb.h", ".grpc.pb.h")}
        self._reached = {}

    @cached_property
    def sources(self):
        """{name of a C++ source: what cpp.read finds in it}"""
        return {name: cpp.read(name, without_noise(self.text[name], Path(name).suffix))
                for name in self.includes}

    @cached_property
    def production(self):
        return {name: source for name, source in self.sources.items() if not is_below(name, "tests")}

    @cached_property
    def python(self):
        """{name of a Python file: its text}, those that are not scanned too."""
        return {name: self.text[name] if name in self.text else (self.root / name).read_text(encoding="utf-8")
                for name in self.paths if name.endswith(".py")}

    @cached_property
    def commits(self):
        """[(short id, subject)] of those that have a rule; None where this checkout cannot tell."""
        return history.subjects(self.root, rules.COMMITS_AFTER)

    @cached_property
    def defined(self):
        """{qualified name of a type of production code: where it is defined}"""
        places = {}
        for source in self.production.values():
            for kind in filter(cpp.is_shared, source.types):
                places.setdefault(kind.name, []).append(f"{kind.file}:{kind.first_line}")
        return places

    @cached_property
    def class_lines(self):
        return cpp.class_lines(self.production.values())

    def _walk(self, folder):
        for path in folder.iterdir():
            if path.name.startswith(".") or path.name in SKIPPED:
                continue
            if path.is_dir() and not path.is_symlink():
                yield from self._walk(path)
            elif path.is_file():
                yield path

    def _includes_of(self, name):
        """[(line, quoted, what)] of one file."""
        text = self.text[name]
        return [(text.count("\n", 0, match.start()) + 1, match[1] == '"', match[2])
                for match in INCLUDE.finditer(text)]

    def reached(self, name):
        """{include: the chain of our files that led there}, over everything included in the end."""
        if name not in self._reached:
            found, waiting = {}, [(name, (name,))]
            while waiting:
                current, chain = waiting.pop(0)
                for _, _, what in self.includes.get(current, []):
                    if what not in found:
                        found[what] = chain
                        waiting.append((what, chain + (what,)))
            self._reached[name] = found
        return self._reached[name]


def wall_of(include):
    """The third party that an include belongs to. gRPC's generated headers are also protobuf."""
    return [wall for wall, row in rules.WALLS.items() if re.search(row["includes"], include)]


def check_folders(tree):
    for name, includes in tree.includes.items():
        folder = folder_of(name)
        if folder is None:
            yield f"{name}: its folder has no row in rules.FOLDERS; add one with what it may see"
            continue
        for line, quoted, what in includes:
            if what.endswith(".cc"):
                yield f'{name}:{line}: includes a source, "{what}"; include a header'
            if what in tree.generated:
                target = folder_of(tree.generated[what])
            elif not quoted or wall_of(what):
                continue
            elif what in tree.includes:
                target = folder_of(what)
            else:
                if not what.startswith("absl/"):
                    yield (f'{name}:{line}: no "{what}" from the root of the checkout; includes of '
                           "ours are written from there, others in <>")
                continue
            allowed = rules.FOLDERS[folder]
            if target != folder and target not in allowed and "*" not in allowed:
                yield (f'{name}:{line}: {folder} may not include "{what}"; it may see '
                       f'{", ".join(allowed) or "nothing else of ours"}')


def check_walls(tree):
    for name, includes in tree.includes.items():
        kind = "headers" if name.endswith(".h") else "sources"
        for line, _, what in includes:
            for wall in wall_of(what):
                row = rules.WALLS[wall]
                if not may_see(name, row, [kind]):
                    yield (f"{name}:{line}: {wall} ({what}) stays behind its wall: {kind} of "
                           f'{", ".join(row[kind]) or "none"}')
        walls = {}
        for what, chain in tree.reached(name).items():
            for wall in wall_of(what):
                walls.setdefault(wall, chain)
        for wall, chain in walls.items():
            row = rules.WALLS[wall]
            if len(chain) > 1 and not may_see(name, row, ["sources", "headers"]):
                yield f"{name}: {wall} reaches it over {' -> '.join(chain)}; keep it out of headers"
        for one, other in rules.NEVER_TOGETHER:
            if one in walls and other in walls:
                yield (f"{name}: sees both {one} and {other}, over {' -> '.join(walls[one])} and "
                       f"{' -> '.join(walls[other])}")


def check_tables():
    """The tables themselves: rows that exist, no circles, and no way from torch to httplib."""
    seen = {}

    def closure(folder, above):
        if folder in above:
            yield f"rules.FOLDERS: circle {' -> '.join(above[above.index(folder):] + (folder,))}"
            return
        if folder in seen:
            return
        seen[folder] = set()
        for target in rules.FOLDERS[folder]:
            if target == "*":
                continue
            if target not in rules.FOLDERS:
                yield f"rules.FOLDERS: {folder} names {target}, which has no row"
                continue
            yield from closure(target, above + (folder,))
            seen[folder] |= {target} | seen.get(target, set())

    for folder in rules.FOLDERS:
        yield from closure(folder, ())
    for one, other in rules.NEVER_TOGETHER:
        for folder, reached in seen.items():
            if not is_in(folder, rules.WALLS[one]["sources"]) or other == "protobuf":
                continue
            for target in reached | {folder}:
                if is_in(target, rules.WALLS[other]["sources"]):
                    yield f"rules: {folder} links {one}, and {other} by way of {target}"


def check_page(tree):
    """The page says what the rules say, word for word."""
    page = tree.root / PAGE
    rows = PAGE_ROW.findall(page.read_text(encoding="utf-8")) if page.exists() else []
    told = dict(rows)
    for folder in told:
        if sum(name == folder for name, _ in rows) > 1:
            yield f"{PAGE}: `{folder}` has two rows"
        if folder not in rules.FOLDERS:
            yield f"{PAGE}: `{folder}` has no row in rules.FOLDERS"
        elif told[folder] != page_cell(folder):
            yield (f"{PAGE}: the last cell of | `{folder}` | is not as rules.FOLDERS has it: "
                   f"{page_cell(folder)}")
    missing = [folder for folder in rules.FOLDERS if folder not in told]
    if missing:
        others = f", and none for the other {len(missing) - 1}" if missing[1:] else ""
        yield f"{PAGE}: no row for `{missing[0]}`{others}; it is to end with {page_cell(missing[0])}"


def check_banned(tree):
    for name, text in tree.text.items():
        suffix = Path(name).suffix
        code = without_noise(text, suffix)
        for row in rules.BANNED:
            if not is_in(name, row["where"]) or is_in(name, row.get("except", [])):
                continue
            if suffix not in row.get("languages", SCANNED):
                continue
            for match in re.finditer(row["pattern"], code):
                line = code.count("\n", 0, match.start()) + 1
                yield f'{name}:{line}: no {match[0].strip()}: {row["instead"]}'


def check_files(tree):
    for name in tree.paths:
        for part in Path(name).parts:
            words = re.split(r"[_.\-]", part.lower())
            for word in set(words) & set(rules.EMPTY_NAMES):
                yield f'{name}: "{word}" says nothing about what is in it; name it by what it does'
    for name, text in tree.text.items():
        lines = text.count("\n")
        limit = rules.LONGER.get(name, rules.MAX_LINES)
        if lines > limit:
            yield f"{name}: {lines} lines, more than {limit}; divide it by what it does"
        if name.endswith(".h") and not re.search(r"^#pragma once$", text, re.MULTILINE):
            yield f"{name}: no #pragma once"
    for name, limit in rules.LONGER.items():
        lines = tree.text.get(name, "").count("\n")
        if lines <= rules.MAX_LINES:
            yield f"rules.LONGER: {name} is short enough now; remove its row"
        elif lines < limit:
            yield f"rules.LONGER: {name} has {lines} lines now; lower its row from {limit}"


def ratchet(table, counted, limit, row, unit):
    """Of those over the limit, the ones without a row of the table or over it; and rows that are too high."""
    for name, count in counted.items():
        if count > table.get(name, limit):
            yield f"{name}: {count} {unit}, more than {table.get(name, limit)}", name
    for name, most in table.items():
        count = counted.get(name, 0)
        if count <= limit:
            yield f"{row}: {name} keeps to the rule now; remove its row", None
        elif count < most:
            yield f"{row}: {name} has {count} {unit} now; lower its row from {most}", None


def check_types(tree):
    """A qualified name is one type, and a class is something that one can know."""
    for name, places in tree.defined.items():
        if len(places) > 1:
            yield f"{places[1]}: {name} is defined in {places[0]} too; give one of them another name"
    for text, name in ratchet(rules.LONGER_CLASSES, tree.class_lines, rules.MAX_CLASS_LINES,
                              "rules.LONGER_CLASSES", "lines"):
        if name is None:
            yield text
        else:
            yield (f"{tree.defined[name][0]}: {text}, with its members in all files; divide it by "
                   "what it does")


def check_functions(tree):
    """A function is read at a sight. `longest` has the longest of those with one name."""
    longest = {}
    for name, source in tree.sources.items():
        for function in source.functions:
            key = f"{name} {function.name}"
            if key not in longest or function.lines > longest[key][0]:
                longest[key] = function.lines, function.first_line, name
    for key, (lines, first_line, name) in longest.items():
        if lines > rules.MAX_FUNCTION_LINES and key not in rules.LONGER_FUNCTIONS:
            yield (f"{name}:{first_line}: {key.removeprefix(name + ' ')} has {lines} lines, more than "
                   f"{rules.MAX_FUNCTION_LINES}; divide it by what it does")
    for key in rules.LONGER_FUNCTIONS:
        if longest.get(key, (0,))[0] <= rules.MAX_FUNCTION_LINES:
            yield f"rules.LONGER_FUNCTIONS: {key} is short enough now; remove its row"


def check_figures(tree):
    """What is added is added in few places, and the first page stays short. Of what figures.py counts
    besides, check_types and check_loops name the places."""
    kinds = [("figure", figures.files_of_figures(tree), rules.MAX_FIGURE_FILES)]
    kinds += [(kind, figures.files_of_plugins(tree, table), rules.MAX_PLUGIN_FILES)
              for kind, table in rules.PLUGIN_TABLES.items()]
    for kind, named, limit in kinds:
        for what, files in named.items():
            if len(files) > limit:
                yield (f"{kind} {what}: {len(files)} files of production code name it, more than {limit}: "
                       f"{', '.join(sorted(files))}")
    words = figures.readme_words(tree)
    if words > rules.MAX_README_WORDS:
        yield f"README.md: {words} words, more than {rules.MAX_README_WORDS}"


def check_lists(tree):
    """Values of an aggregate that are many are given by name: nobody counts commas, no field moves."""
    shared = {kind.name.rsplit("::", 1)[-1] for source in tree.production.values()
              for kind in source.types if cpp.is_shared(kind) and cpp.is_aggregate(kind)}
    counted, found = {}, {}
    for name, source in tree.production.items():
        own = {kind.name.rsplit("::", 1)[-1] for kind in source.types if cpp.is_aggregate(kind)}
        lists = list(cpp.positional_lists(without_comments(tree.text[name]), shared | own,
                                          rules.MAX_POSITIONAL))
        if lists:
            counted[name], found[name] = len(lists), lists
    for text, name in ratchet(rules.POSITIONAL, counted, 0, "rules.POSITIONAL", "lists"):
        if name is None:
            yield text
            continue
        for line, values in found[name]:
            yield (f"{name}:{line}: {values} values without names; write {{.field = value, ...}}, or "
                   "the container's type before the brace")


def check_loops(tree):
    """A folder that includes another, and is included by it, is one folder with two names."""
    for loop in figures.folder_loops(tree):
        yield f"{loop[0]}: its includes lead back to it, through {', '.join(loop[1:])}"


def check_circles(tree):
    """Python files that import each other in the end are one file with several names, wherever their imports stand."""
    for circle in figures.python_circles(tree):
        yield f"{circle[0]}: its imports lead back to it, through {', '.join(circle[1:])}; move what they share below them"


def check_mirrors(tree):
    """Where tests lie tells what they test: each folder has the path of another, or says why not."""
    folders = {name.rpartition("/")[0] for name in tree.paths}
    there = {folder[:end] for folder in folders
             for end in [*(match.start() for match in re.finditer("/", folder)), len(folder)]}

    def mirrored(folder):
        # tests/core is tuner/core, and nothing else is.
        return not is_below(folder, "tests/tuner") and any(
            mirror + folder.removeprefix(tests) in there
            for tests, mirrors in rules.MIRRORS.items() if folder.startswith(tests) for mirror in mirrors)
    for folder in sorted(folders):
        if folder == "tests" or not is_below(folder, "tests") or mirrored(folder):
            continue
        if not any(is_below(folder, place) for place in rules.MIRRORS_NONE):
            yield (f"{folder}: mirrors no folder of the tree; give it the path of what it tests, or a row of "
                   "rules.MIRRORS_NONE that says why not")
    for place in rules.MIRRORS_NONE:
        if place not in there or mirrored(place):
            why = "mirrors a folder" if place in there else "is not there"
            yield f"rules.MIRRORS_NONE: {place} {why}; remove its row"


def check_registered(tree):
    """A source that no CMakeLists.txt above it names is never built, a test never run."""
    listed = {}
    for name in tree.paths:
        if name.rsplit("/", 1)[-1] == "CMakeLists.txt":
            folder = name.rpartition("/")[0]
            listed[folder] = (tree.root / name).read_text(encoding="utf-8")
    for name in tree.text:
        if not name.endswith((".cc", ".cu", "_test.py")):
            continue
        folder = name.rpartition("/")[0]
        above = [text for place, text in listed.items() if place == "" or is_below(folder, place)]
        base = re.escape(name.rsplit("/", 1)[-1])
        if not any(re.search(rf"(?<![\w.]){base}(?![\w.])", text) for text in above):
            yield f"{name}: no CMakeLists.txt of its folder or above names it, so nothing builds or runs it"


def check_messages(tree):
    """A field of a message that no source of production code names is neither set nor read."""
    def blank(match):
        return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n")
    named = set()
    for name in tree.production:
        named |= proto.names_in(C_NOISE.sub(blank, tree.text[name]))
    for name in tree.paths:
        if not name.endswith(".proto"):
            continue
        for line, field in proto.fields((tree.root / name).read_text(encoding="utf-8")):
            if not proto.accessors(field) & named:
                yield f"{name}:{line}: nothing sets or reads {field}; reserve its number and its name"


def check_annotations(tree):
    """Editors and type checkers know what users of the Python package call: it says that it is typed."""
    for name in tree.text:
        folder, _, module = name.rpartition("/")
        if folder in rules.TYPED and not module.startswith("_") and module.endswith(".py"):
            for line, function in annotations.untyped((tree.root / name).read_text(encoding="utf-8")):
                yield f"{name}:{line}: {function} has arguments or a result without a type"


def check_links(tree):
    """A page that links to what is not there leads nowhere."""
    pages = {name: (tree.root / name).read_text(encoding="utf-8") for name in tree.paths if name.endswith(".md")}
    for name, text in pages.items():
        for line, path, anchor in links.links(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if not (tree.root / target).exists():
                yield f"{name}:{line}: links to {path}, which is not there"
            elif anchor and target in pages and anchor not in links.anchors(pages[target]):
                yield f"{name}:{line}: links to #{anchor}, and {target} has no such heading"


def check_commits(tree):
    """Who looks for a change reads subjects, one a line."""
    for commit, subject in tree.commits or []:
        if len(subject) > rules.MAX_SUBJECT:
            yield (f'commit {commit}: a subject of {len(subject)} characters, more than {rules.MAX_SUBJECT}: "{subject}"; '
                   "say why in the body")
        if rules.NEVER_IN_SUBJECT in subject:
            yield f'commit {commit}: "{rules.NEVER_IN_SUBJECT}" in its subject: "{subject}"; make a commit of each thing'


def violations(root):
    tree = Tree(root)
    found = list(check_tables())
    for check in (check_folders, check_walls, check_page, check_banned, check_files, check_types,
                  check_functions, check_lists, check_loops, check_circles, check_figures, check_mirrors,
                  check_registered, check_messages, check_links, check_annotations, check_commits):
        found.extend(check(tree))
    return tree, found


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--figures"]
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    if "--figures" in sys.argv:
        counted = figures.count(Tree(root)) | {"parses_a_submit": submits.parses_a_submit(root)}
        print(json.dumps(counted, indent=2))
        return
    tree, found = violations(root)
    for line in found:
        print(line)
    if not tree.includes:
        sys.exit(f"check.py: no C++ sources below {root}")
    if tree.commits is None:
        print(f"commits: not checked, for want of git or of commit {rules.COMMITS_AFTER[:8]} in this checkout")
    print(f"{len(tree.text)} files checked, {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
