"""A study's record as a notebook keeps it: the page that `tuner run` writes, in a frame of its own."""
import html
import pathlib
import re

# A notebook's file has all of its outputs in it.
_MOST_BYTES = 4 << 20
# In force where the page does not say itself what may run in it.
_NOTHING_ELSE = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
                 'style-src \'unsafe-inline\'; img-src data:">')
_OWN_RULES = re.compile(r'<head>(?:(?!</head>).)*?<meta http-equiv="Content-Security-Policy"', re.IGNORECASE | re.DOTALL)


def frame(path):
    """HTML with the record in it. The frame has no origin, opens and sends nothing, and reaches no network."""
    path = pathlib.Path(path)
    try:
        page = path.read_text(encoding="utf-8") if path.stat().st_size <= _MOST_BYTES else None
    except (OSError, UnicodeDecodeError):
        return ""
    if page is None:
        return f"<p>record: {html.escape(str(path))} (too large to be kept in a notebook)</p>"
    own_rules = _OWN_RULES.search(page) is not None
    if not own_rules:
        page = re.sub("<head>", lambda found: found[0] + _NOTHING_ELSE, page, count=1, flags=re.IGNORECASE)
    return (f"<p>record: {html.escape(str(path))}</p>"
            f"<iframe sandbox=\"{'allow-scripts' if own_rules else ''}\" title=\"record of the study\" "
            f"style=\"width:100%;height:640px;border:1px solid #8888\" srcdoc=\"{html.escape(page)}\"></iframe>")
