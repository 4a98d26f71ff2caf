"""Optuna programs on an Espalier service.

:func:`storage` is an Optuna storage on the service that shows its token, speaks TLS and outlasts a restart of the service.
:func:`slots` gets slots of the service's pool for a trial, and gives them back.
"""
try:
    from espalier_optuna._slots import HeldSlots, SlotsError, SlotsLost, SlotsRefused, SlotsTimeout, slots
    from espalier_optuna._storage import EspalierStorage, storage
except ModuleNotFoundError as error:  # the wheel espalier has this package also where Optuna is not wanted
    raise ModuleNotFoundError(f"espalier_optuna needs {error.name}: pip install 'espalier[optuna]'",
                              name=error.name) from error

__all__ = ["EspalierStorage", "HeldSlots", "SlotsError", "SlotsLost", "SlotsRefused", "SlotsTimeout", "slots", "storage"]
