"""Optuna programs on an Espalier service.

:func:`storage` is an Optuna storage on the service that shows its token, speaks TLS and outlasts a restart of the service.
:func:`train` runs an elastic trial on the service's pool, with the parameters of one of Optuna's.
:func:`slots` gets slots of the pool for a trial, and gives them back.
"""
try:
    from espalier_optuna._slots import HeldSlots, SlotsError, SlotsLost, SlotsRefused, SlotsTimeout, slots
    from espalier_optuna._storage import EspalierStorage, storage
    from espalier_optuna._train import TrainError, train
except ModuleNotFoundError as error:  # the wheel espalier-tuner has this package also where Optuna is not wanted
    raise ModuleNotFoundError(f"espalier_optuna needs {error.name}: pip install 'optuna>=4.5' grpcio protobuf",
                              name=error.name) from error

__all__ = ["EspalierStorage", "HeldSlots", "SlotsError", "SlotsLost", "SlotsRefused", "SlotsTimeout", "TrainError",
           "slots", "storage", "train"]
