"""What is raised also by what a study's result is made of. Programs know these as espalier.errors has them."""


class EspalierError(RuntimeError):
    """Base class of Espalier's errors."""


class UsageError(EspalierError):
    """The library was used in a way that cannot work; the message says what would be right."""


class TrialError(EspalierError):
    """The trial cannot continue: its gradients are not finite, a checkpoint is damaged, or the group is lost."""


class ServiceError(EspalierError):
    """The service refused a request. The message comes from the service; `code` is its error code, such as
    "ALREADY_EXISTS"."""

    def __init__(self, message: str, code: str = "UNKNOWN") -> None:
        super().__init__(message)
        self.code = code


class UnreachableError(ServiceError):
    """No tuner service answers at the address, or it is not the one that the token is for."""


class AccessError(ServiceError):
    """The token is missing, wrong or expired, or its role does not permit the call."""


class NotFoundError(ServiceError):
    """There is no such study, trial or node."""


def first_line(error):
    """Of an error's text that is not blank; of one without a text its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


for _kind in (EspalierError, UsageError, TrialError, ServiceError, UnreachableError, AccessError, NotFoundError):
    _kind.__module__ = "espalier.errors"  # which a traceback tells the user
