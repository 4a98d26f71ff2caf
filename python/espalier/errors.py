"""What the library raises."""
import typing

from espalier._errors import (AccessError, EspalierError, NotFoundError, ServiceError, TrialError, UnreachableError,
                              UsageError)

if typing.TYPE_CHECKING:
    from espalier._result import Result

__all__ = ["AccessError", "EspalierError", "NotFoundError", "ServiceError", "StudyError", "TrialError",
           "UnreachableError", "UsageError"]


class StudyError(EspalierError):
    """A study has failed, or none of its trials got a value. `result` is its Result so far."""

    def __init__(self, message: str, result: "Result | None" = None) -> None:
        super().__init__(message)
        self.result = result
