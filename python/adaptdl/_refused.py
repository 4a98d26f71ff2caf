"""What AdaptDL has and Espalier has not: importing it is no error, using it is one that says what would be right."""
from espalier.errors import UsageError


def refused(name, reason):
    """A class of that name, of which nothing can be made."""
    def __init__(self, *args, **kwargs):
        raise UsageError(f"{name}: {reason}")
    return type(name, (), {"__init__": __init__, "__doc__": f"Not offered: {reason}."})
