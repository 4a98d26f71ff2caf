"""What the library raises."""


class EspalierError(RuntimeError):
    """Any error of Espalier's own."""


class UsageError(EspalierError):
    """The library was used in a way that cannot work; the message says what would be right."""


class TrialError(EspalierError):
    """The trial cannot go on: its gradients are not finite, a checkpoint is damaged, the group is lost."""


class ServiceError(EspalierError):
    """The service has refused a request; the message is its own. `code` is the service's name for what is wrong,
    such as "ALREADY_EXISTS"."""

    def __init__(self, message, code="UNKNOWN"):
        super().__init__(message)
        self.code = code


class UnreachableError(ServiceError):
    """No tuner service answers there, or it is not the one that the token is for."""


class AccessError(ServiceError):
    """The token is missing, wrong or ended, or its role does not suffice."""


class NotFoundError(ServiceError):
    """There is no such study, trial or node."""


class StudyError(EspalierError):
    """A study has failed, or none of its trials came to a value. `result` is what there is of it."""

    def __init__(self, message, result=None):
        super().__init__(message)
        self.result = result
