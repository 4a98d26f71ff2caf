"""AdaptDL's iterator over a torchtext that is no longer released."""
from adaptdl._refused import refused

AdaptiveBPTTIterator = refused("AdaptiveBPTTIterator", "torchtext has no BPTTIterator any more: cut the text into "
                               "samples of a data set")
