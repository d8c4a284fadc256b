"""One step after another: the data, the views, the networks, the optimiser and the target."""

import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from lightning_fabric import Fabric
from torch import Generator, Tensor

from twofold.data import Source
from twofold.errors import BadInput
from twofold.training.arithmetic import Arithmetic, choose
from twofold.training.optimizers import groups, rate
from twofold.training.randomness import NETWORK, VIEWS, Order, derived, restore, seed_all, states
from twofold.training.student import Plan

logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # our own announcement says the precision


class Taken(NamedTuple):
    """One step that was taken: its number, its learning rate, and the loss with its parts, still on the device."""

    step: int
    lr: float
    parts: dict[str, Tensor]


class Trainer:
    """Owns all that changes while training; ``step`` is the number of steps taken.

    ``advance`` never waits for the device: what it returns are tensors.
    """

    def __init__(self, plan: Plan, source: Source, arithmetic: Arithmetic | None = None) -> None:
        chosen = plan.settings
        self.plan = plan
        self.source = source
        self.order = Order(len(source.pool), source.visits, chosen.batch_size, chosen.seed)
        self.steps = chosen.steps or (chosen.epochs or 1) * self.order.steps_an_epoch
        self.step = 0
        student = plan.student()
        device = Fabric(accelerator="auto", devices=1).device
        self.arithmetic = arithmetic or choose(chosen.precision, student, plan.shape, device)
        mixed = self.arithmetic.precision == "bf16"
        self.fabric = Fabric(accelerator="auto", devices=1, precision="bf16-mixed" if mixed else "32-true")
        self.student = self.arithmetic.module(student).train()
        learners = groups(self.student.dual.learners(), chosen.optimizer.weight_decay)
        if not learners:
            raise BadInput(f"the encoder {chosen.encoder} with its projector has no weights to train")
        self._model = self.fabric.setup_module(self.student)
        optimizer = self.fabric.setup_optimizers(chosen.optimizer.over(learners, chosen.highest_lr))
        self._optimizer = cast(torch.optim.Optimizer, optimizer)
        self._views = Generator(self.fabric.device)
        self._warmup = math.ceil(chosen.warmup * self.steps)

    @property
    def epoch(self) -> float:
        """Passes through the data so far."""
        return self.step / self.order.steps_an_epoch

    def start(self) -> None:
        """Seed what the networks may draw from while they train."""
        seed_all(derived(self.plan.settings.seed, NETWORK, 2))

    def advance(self) -> Taken:
        """Take one step: gradient, optimiser, then the target."""
        first, second = self.pair()
        parts = self._model(first, second)
        self._optimizer.zero_grad(set_to_none=True)
        self.fabric.backward(parts["loss"])
        if self.plan.settings.clip is not None:
            self.fabric.clip_gradients(
                self._model, self._optimizer, max_norm=self.plan.settings.clip, error_if_nonfinite=False
            )
        lr = self._set_rate()
        self._optimizer.step()
        self.student.dual.follow()
        self.step += 1
        return Taken(self.step, lr, {name: part.detach() for name, part in parts.items()})

    def pair(self) -> tuple[Tensor, Tensor]:
        """Draw the views of the next step."""
        source, device = self.source, self.fabric.device
        samples = source.pool.take(self.order.rows(self.step)).to(device, non_blocking=True)
        self._views.manual_seed(derived(self.plan.settings.seed, VIEWS, self.step))
        first, second = source.views.pair(samples, self._views)
        return self.arithmetic.laid_out(first), self.arithmetic.laid_out(second)

    def _set_rate(self) -> float:
        chosen = self.plan.settings
        lr = chosen.highest_lr * rate(self.step, self.steps, self._warmup, chosen.schedule)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        return lr

    def finite(self) -> bool:
        """Tell whether every weight is a number; waits for the device."""
        sizes = torch._foreach_norm([weight.detach() for weight in self.student.parameters()])
        return bool(torch.stack(sizes).isfinite().all())

    def weights(self) -> dict[str, Tensor]:
        """All weights and statistics of both networks and the predictor."""
        return dict(self.student.dual.state_dict())

    def state(self) -> dict[str, Any]:
        """Everything else that the next step depends on."""
        return {
            "step": self.step,
            "steps": self.steps,
            "samples": len(self.source.pool),
            "optimizer": self._optimizer.state_dict(),
            "generators": states(),
            "arithmetic": vars(self.arithmetic),
        }

    def restore(self, weights: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Go back to where a checkpoint was made, with the same data."""
        now = {"steps": self.steps, "samples": len(self.source.pool)}
        then = {name: state[name] for name in now}
        if now != then:
            raise BadInput(f"the data have changed since the checkpoint: there were {then}, there are {now}")
        self.student.dual.load_state_dict(weights)
        self._optimizer.load_state_dict(state["optimizer"])
        restore(state["generators"])
        self.step = state["step"]
