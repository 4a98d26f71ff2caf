"""Which files name an operation of the service: where it is declared, carried out and documented, which is what a new
one touches, and who calls it.

An operation is an rpc of SERVICE, which clients speak to, with one request and one answer. A file names it by any of these:

- the rpc's name, as it is or in snake_case, as a whole word. A name of one word (Ask) is also one of English and of
  others' functions, and counts only as it is and where it is marked as the operation's: after `api::`, `Client::`,
  `client.`, `client->`, `Stub::` or `Tuner/`, or alone in quotes. So does that of another service's rpc (GetTrial) in the
  folder of that service's .proto and below;
- its messages: the request that no other rpc takes, and an answer that is called after it;
- its path in HTTP, with any segment for a parameter. On a line that names methods it is only of those;
- the method of the Python client that sends to this path, where it is called on a client or, on PYTHON_PAGE, stands
  between backticks;
- the events that its function in API makes for the core, if no other function there makes them.

Only the rpc's name is looked for by how it is spelt: it is what former clients call, so it stays. All else is found by
what it is bound to: messages by the rpc, the path by OPENAPI, the method by its path, the events by the function that takes
the request. Who gives one of those another name is therefore counted as before.

All sources and pages are looked at but those of tests: production code, the Python packages, adapters, examples, scripts,
docs and OPENAPI. Comments count, which have to be true as well. Other JSON and what is recorded do not. Build outputs are
not read.

Two of the places are written from the table of operations by tests/server/http/openapi_test.cc, and nobody touches them by
hand for a new operation: OPENAPI, and the rows of WRITTEN_TABLE in a page. They do not count. What lies below CALLERS
uses operations that are there: verbs, adapters, examples, the Python packages, whose client calls any operation by its name
and has methods for most. So does a page that names an operation by such a method alone. A new operation needs none of them,
so they are told apart."""

import ast
import json
import re

SERVICE = "Tuner"
OPENAPI = "docs/openapi.json"
PYTHON_CLIENT = "python/espalier/client.py"
PYTHON_PAGE = "docs/python.md"
API = "tuner/api"
EVENTS = "tuner/core/state/event.h"
PAGES = (".md",)
CALLERS = ("adapters/", "examples/", "python/", "tuner/cli/", "tuner/simulator/", PYTHON_PAGE)
WRITTEN_TABLE = "| call | what it does | role |\n|---|---|---|\n"
METHODS = ("GET", "POST", "PUT", "DELETE")

_SERVICE = re.compile(r"^service (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_RPC = re.compile(r"\brpc\s+(\w+)\s*\(\s*(stream\s+)?([\w.]+)\s*\)\s*returns\s*\(\s*(stream\s+)?([\w.]+)\s*\)")
_EVENT = re.compile(r"using Event =\s*std::variant<([^>]*)>")
_WORD = re.compile(r"\w+")
_MARKED = re.compile(r"(?:\bapi::|\bClient::|\bclient_?(?:\.|->)|\bStub::|\bTuner/)(\w+)\b|([\"'])(\w+)\2")
_CALLED = re.compile(r"client(?:\([^()\n]*\))?\.(?=(\w+)\()", re.IGNORECASE)
_BACKTICKED = re.compile(r"`(\w+)`")
_PATH = re.compile(r"(?<![\w.])/?api(?:/[\w{}$-]+)+(?![/\w])")
_METHOD = re.compile(rf"\b(?:{'|'.join(METHODS)})\b")
_OTHERS = re.compile(r"/?\b\w+\.\w*Service/\w+|\boptuna\.\w+")  # "/optuna.StorageService/GetTrial"
_LINK = re.compile(r'\bhref=\\?"')  # what one follows is GET
_PARAMETER = re.compile(r"\{\w*\}")


def _rpcs(text):
    """{service: [(name, request, answer, whether one of them is a stream)]}"""
    return {service: [(name, request, answer, bool(many or more)) for name, many, request, more, answer in _RPC.findall(body)]
            for service, body in _SERVICE.findall(text)}


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _paths(tree):
    """{operation: (method, path)} as OPENAPI has them, parameters without their names."""
    page = tree.root / OPENAPI
    told = json.loads(page.read_text(encoding="utf-8")) if page.exists() else {}
    return {given["operationId"]: (method.upper(), _PARAMETER.sub("{}", path))
            for path, methods in told.get("paths", {}).items() for method, given in methods.items()
            if isinstance(given, dict) and "operationId" in given}


def _sent(text):
    """(function, method, path) of each call that is given a method and the segments of a path, as in Python's client."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            given = call.args if isinstance(call, ast.Call) else []
            for method, path in zip(given, given[1:]):
                if isinstance(path, ast.List) and isinstance(method, ast.Constant) and method.value in METHODS:
                    parts = [one.value if isinstance(one, ast.Constant) else "{}" for one in path.elts]
                    yield function.name, method.value, "/".join(["/api", *map(str, parts)])


def _made_events(tree, operations):
    """{operation: the events that its function makes and no other one}"""
    listed = _EVENT.search(tree.text.get(EVENTS, ""))
    events = set(_WORD.findall(listed[1])) if listed else set()
    makers = {}
    for name, source in tree.production.items():
        lines = tree.text[name].splitlines() if name.startswith(API + "/") else []
        for function in source.functions if lines else ():
            words = set(_WORD.findall("\n".join(lines[function.first_line - 1:][:function.lines])))
            owner = next((one for one, (request, _) in operations.items() if function.name == one or request in words),
                         function.name)
            for event in (words & events) - set(operations):  # those are looked for anyway
                makers.setdefault(event, set()).add(owner)
    return {one: {event for event, who in makers.items() if who == {one}} for one in operations}


class _File:
    """What one file may name operations by."""

    def __init__(self, name, text):
        text = _OTHERS.sub("", text)
        self.words = set(_WORD.findall(text))
        self.marked = {plain or quoted for plain, _, quoted in _MARKED.findall(text)}
        self.called = set(_CALLED.findall(text)) | set(_BACKTICKED.findall(text) if name == PYTHON_PAGE else ())
        self.sent = set()
        for line in text.splitlines():
            for path in _PATH.findall(line):
                for method in _METHOD.findall(line) or (("GET",) if _LINK.search(line) else METHODS):
                    self.sent.add((method, tuple(path.strip("/").split("/"))))
        if name == PYTHON_CLIENT:
            self.sent |= {(method, tuple(path.strip("/").split("/"))) for _, method, path in _sent(text)}

    def has_path(self, method, path):
        wanted = path.strip("/").split("/")
        return any(method == sent and len(given) == len(wanted) and
                   all(want in ("{}", got) for want, got in zip(wanted, given)) for sent, given in self.sent)


def _by_hand(text):
    """A page without the table that is written from that of the operations."""
    before, table, after = text.partition(WRITTEN_TABLE)
    return before + after[after.find("\n\n"):] if table else text


def files_of_operations(tree, suffixes):
    """{operation: (the files that declare it, carry it out or document it; those that only call it)}, but for what is
    written from the table."""
    protos = {name: (tree.root / name).read_text(encoding="utf-8") for name in tree.paths if name.endswith(".proto")}
    rpcs = [(name, service, *rpc) for name, text in protos.items() for service, found in _rpcs(text).items() for rpc in found]
    own = [rpc for rpc in rpcs if rpc[1] == SERVICE]
    others = [(rpc[2], rpc[0].rpartition("/")[0] + "/") for rpc in rpcs if rpc[1] != SERVICE]
    requests = [rpc[3] for rpc in own]
    operations = {name: (request if requests.count(request) == 1 else None, answer if answer.startswith(name) else None)
                  for _, _, name, request, answer, streams in own if not streams}
    paths, events = _paths(tree), _made_events(tree, operations)
    client = list(_sent(tree.text[PYTHON_CLIENT])) if PYTHON_CLIENT in tree.text else []
    read = {name: _File(name, _by_hand(tree.text[name] if name in tree.text
                                       else (tree.root / name).read_text(encoding="utf-8")))
            for name in tree.paths if not name.startswith("tests/") and name.endswith((*suffixes, *PAGES))}
    files = {}
    for name, messages in operations.items():
        bound = {*filter(None, messages), *events[name]}
        spelt = {name, _snake(name)} if "_" in _snake(name) else set()
        of_others = tuple(folder for other, folder in others if other == name)
        method, path = paths.get(name, (None, None))
        called = {function for function, *to in client if to == [method, path]}
        named = {file for file, found in read.items()
                 if bound & found.words or name in found.marked or spelt & found.words and not file.startswith(of_others)
                 or path is not None and found.has_path(method, path)}
        calling = {file for file, found in read.items() if called & found.called}
        own = {file for file in named if not file.startswith(CALLERS)}
        files[name] = own, (named | calling) - own
    return files
