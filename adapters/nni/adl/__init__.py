"""The platform of AdaptDL's experiments in NNI 2.x, "adl", on an Espalier pool."""
import dataclasses
import types

from typing_extensions import Literal

import espalier_nni
from espalier_nni.registration import MODULE_CLASS, MODULE_PATH

__all__ = ["AdlConfig", "nni_training_service_info"]


@dataclasses.dataclass(init=False)
class AdlConfig(espalier_nni.EspalierConfig):
    """EspalierConfig under the old name."""

    platform: Literal["adl"] = "adl"


nni_training_service_info = types.SimpleNamespace(
    config_class=AdlConfig, node_module_path=str(MODULE_PATH), node_class_name=MODULE_CLASS)
