"""What the rules need to know of protocol buffers: the fields that a .proto file declares, and the names by
which C++ reads and writes them."""

import re

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FIELD = re.compile(r"^[ \t]*(?:(?:optional|repeated)[ \t]+)?(?:map[ \t]*<[^>]*>|[\w.]+)[ \t]+(?P<name>\w+)[ \t]*=[ \t]*"
                   r"\d+[ \t]*(?:\[[^\]]*\])?;", re.MULTILINE)
# A call, what stands after ::, or a text that is one name: by which reflection looks a field up.
NAMES = re.compile(r'(\w+)\s*\(|::(\w+)|"(\w+)"')


def fields(text):
    """[(line, name)] of all fields of messages and extensions."""
    plain = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [(plain.count("\n", 0, match.start("name")) + 1, match["name"]) for match in FIELD.finditer(plain)]


def accessors(field):
    """The names under which generated code has a field. The last is the enumerator of a oneof."""
    return {field, *(f"{verb}_{field}" for verb in ("set", "mutable", "has", "add", "clear", "set_allocated")),
            f"{field}_size", "k" + "".join(word.capitalize() for word in field.split("_"))}


def names_in(code):
    """Every name in a C++ source, given without comments, that may be one of those."""
    return {name for match in NAMES.finditer(code) for name in match.groups() if name}
