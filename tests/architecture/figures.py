"""What can be counted of a tree's shape: how large its largest class and folder are, how many files a new figure, plug-in
or operation touches, loops between folders and circles of Python's imports. check.py --figures prints it."""

import re

import modules
import operations
import rules

SOURCES = (".cc", ".h", ".cu", ".py", ".proto", ".js", ".ts", ".sh")
ROW = re.compile(r"\b(\w+)::(\w+Row)\(\)")


def readme_words(tree):
    page = tree.root / "README.md"
    return len(page.read_text(encoding="utf-8").split()) if page.exists() else 0


def files_with(tree, pattern, *texts):
    """The files of production code that match; none does without one of the texts, which are sooner looked for."""
    return {name for name in tree.production
            if any(text in tree.text[name] for text in texts) and re.search(pattern, tree.text[name])}


def files_of_figures(tree):
    """{enumerator of a figure: the files that name it}: the table has it, and what measures it."""
    table = tree.text.get(rules.FIGURES["file"], "")
    listed = re.search(rf"\benum class {rules.FIGURES['enumeration']}\b[^{{]*{{([^}}]*)}}", table)
    files = {}
    for enumerator in re.findall(r"\bk\w+", listed[1]) if listed else []:
        told = rf"\b{rules.FIGURES['enumeration']}::{enumerator}\b"
        files[enumerator] = files_with(tree, told, enumerator) | {rules.FIGURES["file"]}
    return files


def files_of_plugins(tree, table):
    """{row of a table: the files that name the plug-in}, which is by its row, or its source's header."""
    files = {}
    for _, row in ROW.findall(tree.text.get(table, "")):
        pattern = rf"\b{row}\b"
        texts = [row]
        homes = files_with(tree, rf"\b{row}\(\) {{", row)
        for home in homes:
            header = home.removesuffix(".cc") + ".h"
            if header in tree.includes:
                pattern += f'|"{re.escape(header)}"'
                texts.append(header)
        files[row] = files_with(tree, pattern, *texts)
    return files


def most(files):
    """How many files the thing has that most files name."""
    return max(map(len, files.values()), default=0)


def folder_loops(tree):
    """Groups of folders that include each other in the end."""
    edges = {}
    for name in tree.production:
        folder = name.rpartition("/")[0]
        for _, _, what in tree.includes[name]:
            target = tree.generated.get(what) or (what.rpartition("/")[0] if what in tree.includes else None)
            if target and target != folder:
                edges.setdefault(folder, set()).add(target)
    return modules.circles(edges)


def python_circles(tree):
    """Groups of Python files that import each other in the end."""
    return modules.circles(modules.imports(tree.python))


def flat_folders(tree):
    """{folder: how many sources lie in it, not below}, those of tests included."""
    counted = {}
    for name in tree.paths:
        if name.endswith(SOURCES):
            folder = name.rpartition("/")[0]
            counted[folder] = counted.get(folder, 0) + 1
    return counted


def count(tree):
    largest = max(tree.class_lines, key=tree.class_lines.get, default=None)
    loops, circles = folder_loops(tree), python_circles(tree)
    folders = flat_folders(tree)
    flattest = max(folders, key=folders.get, default=None)
    named, calling = {}, {}
    for name, (own, callers) in operations.files_of_operations(tree, SOURCES).items():
        named[name], calling[name] = len(own), len(callers)
    costliest = max(named, key=named.get, default=None)
    counted = {
        "largest_class": largest,
        "largest_class_lines": tree.class_lines.get(largest, 0),
        "files_a_figure": most(files_of_figures(tree)),
    }
    for kind, table in rules.PLUGIN_TABLES.items():
        article = "an" if kind[0] in "aeiou" else "a"
        counted[f"files_{article}_{kind}"] = most(files_of_plugins(tree, table))
    counted |= {
        "folder_loops": len(loops),
        "loops": loops,
        "python_circles": len(circles),
        "circles": circles,
        "largest_flat_folder": folders.get(flattest, 0),
        "largest_flat_folder_name": flattest,
        "files_an_operation": named.get(costliest, 0),
        "largest_operation": costliest,
        "files_of_each_operation": dict(sorted(named.items(), key=lambda one: (-one[1], one[0]))),
        "callers_of_each_operation": dict(sorted(calling.items(), key=lambda one: (-one[1], one[0]))),
        "types_defined_twice": sum(len(places) > 1 for places in tree.defined.values()),
        "readme_words": readme_words(tree),
    }
    return counted
