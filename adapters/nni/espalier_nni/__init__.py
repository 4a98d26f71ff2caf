"""NNI's training service "espalier_nni": trials run on the pool of an Espalier service.

NNI is imported when its configuration class is asked for: the command `espalier-nni` must also work where NNI does not.
"""

__all__ = ["EspalierConfig", "nni_training_service_info"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import types  # pylint: disable=import-outside-toplevel

    from espalier_nni import config, launcher, registration  # pylint: disable=import-outside-toplevel
    launcher.install()
    # What `nnictl trainingservice register` reads, and NNI at every start.
    info = types.SimpleNamespace(config_class=config.EspalierConfig, node_module_path=str(registration.MODULE_PATH),
                                 node_class_name=registration.MODULE_CLASS)
    globals().update(EspalierConfig=config.EspalierConfig, nni_training_service_info=info)
    return globals()[name]
