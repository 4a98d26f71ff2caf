"""The module of two optimizers that lightning_manual_test.py and its probe train: it takes its steps by itself."""
import torch
from lightning.pytorch import LightningModule
from lightning_module import pause
from small_program import net


class Adversaries(LightningModule):
    """Two nets that work against one another: `critic` is to tell the targets from what `maker` makes of the inputs.

    way: what a batch does. "toggled": as Lightning's examples of GANs. "zeroed": the loss of the first leaves gradients
    to the second, which it zeroes. "critic first": the second optimizer is stepped first. "closures": steps run backward.
    "now and then": the second optimizer is stepped in every third batch. "one": a single optimizer, whose gradients are clipped.
    """

    def __init__(self, way="toggled", lr=0.01, pause_s=0.0):
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.critic = net(), net(seed=7, features=1)
        self.way, self.lr, self.pause_s = way, lr, pause_s
        self.rates, self.indices = [], []

    def maker_loss(self, x, y):
        made = self.maker(x)
        return torch.nn.functional.mse_loss(made, y) + self.critic(made).pow(2).mean()

    def critic_loss(self, x, y):
        return (self.critic(y) - 1).pow(2).mean() + (self.critic(self.maker(x).detach()) + 1).pow(2).mean()

    def training_step(self, batch, batch_idx):
        x, y = batch
        pause(self.pause_s)
        self.indices.append(batch_idx)
        losses = getattr(self, "step_" + self.way.replace(" ", "_"))(x, y, batch_idx)
        self.log_dict(losses, on_step=False, on_epoch=True, batch_size=len(x))
        self.log("samples", float(len(x)), on_step=False, on_epoch=True, reduce_fx="sum")
        return losses["maker_loss"]

    def step_toggled(self, x, y, _):
        losses = {}
        for name, optimizer, loss_of in zip(("maker_loss", "critic_loss"), self.optimizers(),
                                            (self.maker_loss, self.critic_loss)):
            self.toggle_optimizer(optimizer)
            losses[name] = loss_of(x, y)
            self.manual_backward(losses[name])
            optimizer.step()
            optimizer.zero_grad()
            self.untoggle_optimizer(optimizer)
        for scheduler in self.lr_schedulers():
            scheduler.step()
        return losses

    def step_zeroed(self, x, y, _):
        losses = {}
        for name, optimizer, loss_of in zip(("maker_loss", "critic_loss"), self.optimizers(),
                                            (self.maker_loss, self.critic_loss)):
            losses[name] = loss_of(x, y)
            optimizer.zero_grad()
            self.manual_backward(losses[name])
            self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
            optimizer.step()
        return losses

    def step_critic_first(self, x, y, _):
        first, second = self.optimizers()
        critic = self.critic_loss(x, y)
        self.critic.zero_grad()
        self.manual_backward(critic)
        second.step()
        maker = self.maker_loss(x, y)
        first.zero_grad(set_to_none=False)
        self.manual_backward(maker)
        self.clip_gradients(first, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        first.step()
        return {"maker_loss": maker, "critic_loss": critic}

    def step_closures(self, x, y, _):
        losses = {}
        for name, optimizer, loss_of in zip(("maker_loss", "critic_loss"), self.optimizers(),
                                            (self.maker_loss, self.critic_loss)):
            def closure(name=name, loss_of=loss_of, optimizer=optimizer):
                losses[name] = loss_of(x, y)
                optimizer.zero_grad()
                self.manual_backward(losses[name])
            with optimizer.toggle_model():
                optimizer.step(closure=closure)
        return losses

    def step_now_and_then(self, x, y, batch_idx):
        first, second = self.optimizers()
        maker, critic = self.maker_loss(x, y), self.critic_loss(x, y)
        first.zero_grad()
        self.manual_backward(maker)
        first.step()
        if batch_idx % 3 == 0:
            second.zero_grad()
            self.manual_backward(self.critic_loss(x, y))
            second.step()
        return {"maker_loss": maker, "critic_loss": critic}

    def step_one(self, x, y, _):
        optimizer = self.optimizers()
        losses = {"maker_loss": self.maker_loss(x, y), "critic_loss": self.critic_loss(x, y)}
        optimizer.zero_grad()
        for loss in losses.values():
            self.manual_backward(loss, retain_graph=True)
        torch.nn.utils.clip_grad_norm_(self.parameters(), 2.0)
        optimizer.step()
        self.lr_schedulers().step()
        return losses

    def validation_step(self, batch, batch_idx):
        x, y = batch
        # Of both nets, and more of the one to which the other's loss leaves gradients.
        value = 0.1 * torch.nn.functional.mse_loss(self.maker(x), y) + self.critic_loss(x, y)
        self.log("val_loss", value, batch_size=len(x))

    def on_train_epoch_end(self):
        optimizers = self.optimizers()
        self.rates.append([o.param_groups[0]["lr"] for o in (optimizers if isinstance(optimizers, list) else [optimizers])])

    def configure_optimizers(self):
        schedule = torch.optim.lr_scheduler.ExponentialLR
        if self.way == "one":
            optimizer = torch.optim.Adam(self.parameters(), self.lr)
            return [optimizer], [schedule(optimizer, 0.99)]
        maker = torch.optim.SGD(self.maker.parameters(), self.lr, momentum=0.9)
        critic = torch.optim.Adam(self.critic.parameters(), self.lr)
        return [maker, critic], [schedule(maker, 0.99), schedule(critic, 0.98)]
