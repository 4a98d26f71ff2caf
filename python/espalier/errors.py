"""What the library raises."""


class EspalierError(RuntimeError):
    """Any error of Espalier's own."""


class UsageError(EspalierError):
    """The library was used in a way that cannot work; the message says what would be right."""


class TrialError(EspalierError):
    """The trial cannot go on: its gradients are not finite, a checkpoint is damaged, the group is lost."""
