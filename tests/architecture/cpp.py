"""What the rules need to know of C++: which types a source defines, which lines belong to a class, and
its brace lists. Reads text that is free of comments and strings, so it needs no compiler."""

import re
from dataclasses import dataclass, field

OPENING = re.compile(
    r"\bnamespace\s+(?P<namespace>[\w:]*)\s*$"
    r"|(?P<enum>\benum\s+)?\b(?:class|struct|union|enum)\s+"
    r"(?:alignas\s*\([^()]*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"(?P<type>\w[\w:]*(?:<.*>)?)\s*(?:final\b\s*)?(?::(?!:)(?P<bases>[^;{}()]*(?:\([^()]*\))?[^;{}()]*))?$",
    re.DOTALL)
FUNCTION = re.compile(r"TEST\w*\s*\([^()]*\)|(?P<name>(?:[\w:]+::)?operator\s*(?:\(\)|[^\s(]+)|[\w:~]+)\s*\(")
QUALIFIER = re.compile(r"([\w:]+)::(?:~?\w+|operator\s*\S+)\s*$")
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TEMPLATE = re.compile(r"^\s*template\s*<")


@dataclass
class Type:
    name: str  # with its namespaces and outer types
    file: str
    first_line: int
    lines: int = 0
    is_struct: bool = False
    body: str = ""
    bases: str = ""


@dataclass
class Member:
    """A member function that is defined outside of its class."""
    owner: str  # as it is written, below `scope`
    scope: str
    lines: int


@dataclass
class Function:
    """Whatever has a body, in or outside of a class; what is defined within it is part of it."""
    name: str  # what stands before its first parenthesis, a test's with its two names
    first_line: int
    lines: int


@dataclass
class Source:
    types: list = field(default_factory=list)
    members: list = field(default_factory=list)
    functions: list = field(default_factory=list)


def without_templates(text):
    """The text with what stands between < and > taken out, arrows and comparisons of single words left."""
    before = None
    while before != text:
        before, text = text, re.sub(r"(?<=[\w>])<(?:[^<>;{}]|->)*>", "", text)
    return text


def declarator(head):
    """The qualified name that a head of a function defines: 'Impl::Take' of 'int Impl::Take(int x)'."""
    plain = without_templates(head)
    before_arguments = plain.split("(", 1)
    if len(before_arguments) < 2 or "=" in before_arguments[0].replace("operator=", ""):
        return None
    match = QUALIFIER.search(before_arguments[0])
    return match[1] if match else None


def read(name, code):
    """The types and members of a source, given without comments and strings."""
    code = PREPROCESSOR.sub(lambda m: "\n" * m[0].count("\n"), code)
    found = Source()
    scopes = []  # (kind, name, Type or start of a member)
    start = 0  # of the declaration that is being read
    for match in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:(?!:)", code):
        at, mark = match.start(), match[0]
        inside = scopes[-1][0] if scopes else "namespace"
        if mark == "{":
            head = code[start:at]
            opening = OPENING.search(head)
            if inside == "namespace" and head.strip() == "extern":  # "C", whose text is blanked
                scopes.append(("namespace", "(anonymous)", None))
                start = at + 1
                continue
            if inside in ("namespace", "type") or opening:
                if opening and opening["namespace"] is not None:
                    scopes.append(("namespace", opening["namespace"] or "(anonymous)", None))
                    start = at + 1
                    continue
                if opening and "(" not in head[:opening.start()]:
                    outer = [scope[1] or "(local)" for scope in scopes]
                    first = start + len(head) - len(head.lstrip())
                    kind = Type("::".join(outer + [opening["type"]]), name, code.count("\n", 0, first) + 1,
                                is_struct="struct" in opening[0].split(opening["type"])[0].split(),
                                bases=opening["bases"] or "")
                    if opening["enum"] or "enum" in opening[0].split()[0]:
                        kind.is_struct = False
                    scopes.append(("type", opening["type"], (kind, at + 1)))
                    start = at + 1
                    continue
            # A body, an initialiser or the list of a constructor: what is in it defines nothing that counts.
            scopes.append(("other", "", start))
        elif mark == "}":
            if not scopes:
                continue
            kind, _, held = scopes.pop()
            if kind == "type":
                held, first = held
                held.lines = code.count("\n", 0, at) + 2 - held.first_line
                held.body = code[first:at]
                found.types.append(held)
                start = at + 1
            elif kind == "namespace":
                start = at + 1
            elif not scopes or scopes[-1][0] != "other":
                rest = code[at + 1:at + 200].lstrip()[:1]
                if rest in (",", "{", ";", ")"):
                    start = held  # `a_{b}, c_{d} {`: the function goes on
                    continue
                head = code[held:at]
                owner = declarator(head[:head.index("{")]) if "{" in head else None
                first = held + len(head) - len(head.lstrip())
                lines = code.count("\n", first, at) + 1
                if owner and (not scopes or scopes[-1][0] == "namespace"):
                    found.members.append(Member(owner, "::".join(scope[1] for scope in scopes), lines))
                if named := FUNCTION.search(head):
                    name = re.sub(r"\s+", " ", named["name"] or named[0])
                    found.functions.append(Function(name, code.count("\n", 0, first) + 1, lines))
                start = at + 1
        elif inside != "other":
            start = match.end()
    return found


def class_lines(sources):
    """{qualified name: lines of its definition and of its members elsewhere}, over all sources."""
    lines = {}
    for source in sources:
        for kind in source.types:
            lines[kind.name] = lines.get(kind.name, 0) + kind.lines
    for source in sources:
        for member in source.members:
            scope = [part for part in member.scope.split("::") if part and part != "(anonymous)"]
            while True:
                owner = "::".join(scope + [member.owner])
                if owner in lines:
                    lines[owner] += member.lines
                    break
                if not scope:
                    break
                scope.pop()
    return lines


def is_aggregate(kind):
    """Whether its values can be given in braces: a struct without constructors, secrets or virtuals."""
    if not kind.is_struct or kind.bases:
        return False
    short = re.escape(kind.name.rsplit("::", 1)[-1])
    top = flat(kind.body)
    return not (re.search(rf"(?<![\w~]){short}\s*\(", top) or re.search(r"\bvirtual\b|\bprivate\s*:", top))


def is_shared(kind):
    """Whether other sources mean the same type by its name."""
    return "(" not in kind.name


def flat(body):
    """A body without what stands in inner braces."""
    before = None
    while before != body:
        before, body = body, re.sub(r"\{[^{}]*\}", "", body)
    return body


def values(text):
    """The values of a brace list, split at its own commas."""
    depth, parts, last = 0, [], 0
    text = without_templates(text)
    for at, mark in enumerate(text):
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    parts.append(text[last:].strip())
    return parts if parts[-1] else parts[:-1]


def brace_lists(code):
    """(position, the text that leads to it, the text within) of each pair of braces."""
    open_at = []
    for match in re.finditer(r"[{}]", code):
        if match[0] == "{":
            open_at.append(match.start())
        elif open_at:
            first = open_at.pop()
            yield first, code[max(0, first - 300):first].rstrip(), code[first + 1:match.start()]


NUMBER = re.compile(r"-?(?:0x[\da-fA-F.]+(?:p[-+]?\d+)?|[\d.']+(?:e[-+]?\d+)?)[a-zA-Z]*")
TEXT = re.compile(r'(?:""\s*)+')
NAMED = re.compile(r"(?P<type>[A-Za-z_][\w:]*)(?:\s+\w+\s*=?)?$")
ENUMERATOR = re.compile(r"(?<=\w)::k\w+$")
CALL = re.compile(r"\w+(?:::\w+)*\(\)")
NO_LIST = re.compile(r"\benum\b[^;{}()]*$|\bnamespace\b[\w\s:]*$|\)\s*(?:(?:const|override|final|noexcept|mutable)\s*)*$"
                     r"|->\s*[\w:&*]+$|\belse$|\bdo$|\btry$")
WORD_BEFORE = re.compile(r"\b(?:return|co_return|co_yield|else|throw)(?=\s+[\w:]+$)")
NO_TYPE = {"return", "co_return", "co_yield"}
ENUMERATOR = re.compile(r"(?<=\w)::k\w+$")
CALL = re.compile(r"\w+(?:::\w+)*\(\)")
NO_LIST = re.compile(r"\benum\b[^;{}()]*$|\bnamespace\b[\w\s:]*$|\)\s*(?:(?:const|override|final|noexcept|mutable)\s*)*$"
                     r"|->\s*[\w:&*]+$|\belse$|\bdo$|\btry$")
ANY_TYPE = {"return", "co_return", "else", "in"}


def is_list_of_one_kind(given):
    """Numbers, texts, calls, enumerators of one type, or rows that are looked at on their own."""
    for kind in (NUMBER, TEXT, CALL):
        if all(kind.fullmatch(value) for value in given):
            return True
    types = {ENUMERATOR.sub("", value) if ENUMERATOR.search(value) else None for value in given}
    return all(value.startswith("{") for value in given) or (len(types) == 1 and None not in types)


def positional_lists(code, aggregates, most):
    """(line, values) of each brace list with more values than `most` and without names, but for the
    lists of what is no aggregate: of a type with another name, of one kind, or in a range-for. `code`
    has each text blanked to an empty one; `aggregates` are the short names of those it can mean."""
    aggregates = aggregates - set(re.findall(r"\busing\s+(\w+)\s*=", code))
    for at, before, inner in brace_lists(code):
        if ";" in flat(inner):
            continue
        given = values(inner)
        if len(given) <= most or given[0].startswith("."):
            continue
        plain = WORD_BEFORE.sub(";", without_templates(before))
        if NO_LIST.search(plain) or re.search(r"\[\w*\]\s*=?$", plain) or re.search(r"\bfor\s*\([^;{}]*:$", plain):
            continue
        named = NAMED.search(plain)
        short = named and named["type"].rsplit("::", 1)[-1]
        if named and short not in NO_TYPE and not plain.endswith((".", ">")):
            if short in aggregates:
                yield code.count("\n", 0, at) + 1, len(given)
            continue
        if not is_list_of_one_kind(given):
            yield code.count("\n", 0, at) + 1, len(given)
