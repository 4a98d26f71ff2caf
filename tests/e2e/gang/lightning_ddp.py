"""Lightning's ddp strategy."""
import os

import lightning
import plan
import torch


class Module(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr, self.layer, self.steps = lr, torch.nn.Linear(8, 4), 0

    def training_step(self, batch, _):
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)

    def on_train_batch_end(self, outputs, batch, _):
        self.steps += 1
        plan.follow(self.steps, outputs["loss"].item())


class Samples(torch.utils.data.IterableDataset):
    def __iter__(self):
        for _ in plan.steps():
            yield torch.randn(16, 8)


def main():
    given = plan.arguments()
    torch.manual_seed(0)
    module = Module(given.lr)
    torch.manual_seed(1 + plan.rank())
    trainer = lightning.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                                num_nodes=int(os.environ["NNODES"]), strategy="ddp", max_epochs=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, torch.utils.data.DataLoader(Samples(), batch_size=None))
    plan.end(module.state_dict())
    trainer.strategy.barrier()


main()
plan.leave()
