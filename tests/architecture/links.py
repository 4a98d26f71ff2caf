"""What the rules need to know of Markdown: the links of a page to files and headings, and the headings of a page."""

import re

CODE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\([ \t\n]*(?P<target>[^)\s]+)[ \t\n]*\)")
ELSEWHERE = re.compile(r"[a-z]+:")  # https:, mailto:
HEADING = re.compile(r"^#+[ \t]+(?P<text>.*)$", re.MULTILINE)


def _without_code(text):
    return CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def links(text):
    """[(line, path, anchor)] of all links to files of the tree; the path is empty for the page itself."""
    plain = _without_code(text)
    return [(plain.count("\n", 0, match.start()) + 1, *match["target"].partition("#")[::2])
            for match in LINK.finditer(plain) if not ELSEWHERE.match(match["target"])]


def anchors(text):
    """Those that GitHub gives to the headings of a page."""
    shown = [LINK.sub(lambda match: match[0][1:match[0].index("]")], match["text"])
             for match in HEADING.finditer(_without_code(text))]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in shown}
