"""What a trial hears of what a LightningModule logs."""
from espalier.errors import UsageError
from espalier.integrations._reported import Reports

_METRIC = "val_loss"
_OF_LOADER = f"{_METRIC}/dataloader_idx_"  # Lightning's names where there are several


class EpochReports:
    """One after each epoch with a validation, or after each epoch where there is none."""

    def __init__(self, trainer):
        self._trainer = trainer
        self._reports = Reports(trainer.trial_metric)
        self._validates = trainer.fit_loop.epoch_loop.val_loop._data_source.is_defined()
        self._count = 0

    def report(self, epoch):
        """epoch: counted from 1."""
        trainer, loop = self._trainer, self._trainer.fit_loop.epoch_loop
        if trainer.enable_validation and not loop.validated:
            return
        metrics = self._reports.figures(trainer.callback_metrics)
        wanted = self._chosen(metrics, loop)
        value = loop.mean_loss if wanted is None else metrics.pop(wanted)
        self._reports.send(epoch, value, metrics)
        self._count += 1

    def _chosen(self, metrics, loop):
        """Which metric is the trial's value; None: the mean training loss."""
        wanted, logged = self._reports.wanted, ", ".join(sorted(metrics)) or "none"
        if wanted is not None:
            if wanted not in metrics:
                raise UsageError(f'ElasticTrainer: trial_metric is "{wanted}", and logged are {logged}')
            return wanted
        if _METRIC in metrics:
            return _METRIC
        of_loaders = sorted((name for name in metrics if name.startswith(_OF_LOADER)),
                            key=lambda name: int(name.removeprefix(_OF_LOADER)))
        if of_loaders:
            self._reports.say(f'"{_METRIC}" is logged for several validation loaders, and reported to the trial is '
                              f'"{of_loaders[0]}": for another value name one of {logged} as trial_metric')
            return of_loaders[0]
        if not loop.has_loss:
            raise UsageError(f"ElasticTrainer: training_step returns no loss, and no {_METRIC} is logged: want a trial_metric, "
                             f"one of {', '.join(sorted(metrics)) or 'those that the module is to log'}")
        if self._validates:
            self._reports.say(f'no "{_METRIC}" is logged, and reported to the trial is the mean training loss: for another '
                              f"value name one of those that are logged as trial_metric: {logged}")
        return None

    def end(self, epochs):
        """epochs: all of the trial's, if this replica has been through them; 0: it has not."""
        if epochs and not self._count:
            trainer = self._trainer
            self._reports.say(f"nothing was reported to the trial, since none of its {epochs} epochs was validated: "
                              f"check_val_every_n_epoch is {trainer.check_val_every_n_epoch}, and val_check_interval is "
                              f"{trainer.val_check_interval}")
