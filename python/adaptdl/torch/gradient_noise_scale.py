"""AdaptDL measures gradient noise here; Espalier measures it where gradients are reduced."""
from adaptdl._refused import refused

_REASON = "gradient noise is measured by the library: read it from AdaptiveDataParallel's .gns"
GradientNoiseScale = refused("GradientNoiseScale", _REASON)
AdamGradientNoiseScale = refused("AdamGradientNoiseScale", _REASON)
