"""Optuna's programs on an Espalier service: `train` runs an elastic trial on its pool within an objective, `slots` holds
slots of the pool for what the objective runs itself, and `storage` keeps Optuna's studies on the service."""
from espalier_optuna import *  # noqa: F401,F403
from espalier_optuna import __all__  # noqa: F401
