"""The cases of a test in Python, found in its text: many tests go on in another interpreter or in namespaces of their own as
soon as they are imported."""
import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where tests import modules of ours from, beside their own folder.
MODULES_IN = ("tests/e2e", "tests/e2e/hosts", "tests/e2e/kubernetes", "tests/e2e/nni", "tests/python", "tests/python/integrations",
              "tests/python/ray", "tests/benchmarks", "tests/gpu", "tests/suite")


def folders_of_modules(script):
    """Where a module that the script imports may lie, the nearest first."""
    return [script.parent, *(ROOT / folder for folder in MODULES_IN)]


def _name(node):
    """The last word of a name: TestCase of unittest.TestCase."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class _Module:
    def __init__(self, path, known):
        known[path] = self
        self._path, self._known = path, known
        tree = ast.parse(path.read_text())
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._imported = {alias.asname or alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                          for alias in node.names if node.module}

    def class_of(self, name):
        """(module, class) of a name, as far as it is one of ours."""
        if name in self.classes:
            return self, self.classes[name]
        module = self._imported.get(name)
        for place in folders_of_modules(self._path) if module else ():
            path = place / f"{module.replace('.', '/')}.py"
            if path.exists():
                return (self._known.get(path) or _Module(path, self._known)).class_of(name)
        return None, None

    def tests_of(self, name):
        """(whether it is a TestCase, names of its tests), inherited ones too."""
        module, found = self.class_of(name)
        if found is None:
            return name == "TestCase", set()
        is_case = False
        tests = {node.name for node in found.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and
                 node.name.startswith("test")}
        for base in found.bases:
            base_is, inherited = module.tests_of(_name(base))
            is_case, tests = is_case or base_is, tests | inherited
        return is_case, tests


def cases_of(path):
    """`Class.test_name` of each, sorted."""
    module = _Module(pathlib.Path(path).resolve(), {})
    found = []
    for name in module.classes:
        is_case, tests = module.tests_of(name)
        if is_case:
            found += [f"{name}.{test}" for test in tests]
    return sorted(found)
