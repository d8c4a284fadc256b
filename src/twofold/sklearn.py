"""A door to scikit-learn: training as ``fit``, embedding as ``transform``."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from twofold.data import Split, open_data, raw
from twofold.errors import Diverged
from twofold.training.measure import project_all
from twofold.training.randomness import seeded
from twofold.training.settings import settings
from twofold.training.student import plan
from twofold.training.trainer import Trainer


class TwofoldEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a representation of unlabelled vectors (n, dim), or of images of bytes (n, channels, height, width).

    The parameters are fields of ``twofold.training.TrainSettings``; ``y`` is ignored. A batch larger than the data
    is made as large as the data.

    >>> TwofoldEncoder(method="byol", epochs=20).fit_transform(x)  # doctest: +SKIP
    """

    def __init__(
        self,
        method: str = "simclr",
        encoder: str = "auto",
        width: int | None = None,
        views: Any = None,
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int = 128,
        lr: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.width = width
        self.views = views
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> "TwofoldEncoder":
        """Train on the samples."""
        given = self.get_params(deep=False)
        given["seed"] = given.pop("random_state") or 0
        chosen = settings({**given, "data": "an array"})
        samples = self._checked(X, reset=True)
        source = open_data(samples, views=chosen.views)
        source = replace(source, pool=Split(samples))  # no sample is held out: there is nothing to evaluate here
        chosen = replace(chosen, batch_size=min(chosen.batch_size, len(source.pool)))
        with seeded(chosen.seed):
            trainer = Trainer(plan(chosen, source.shape), source)
            trainer.start()
            while trainer.step < trainer.steps:
                trainer.advance()
        if not trainer.finite():
            raise Diverged(f"the weights are no longer numbers with a learning rate of {chosen.highest_lr:g}")
        self.branch_ = trainer.student.dual.online.cpu().eval()
        self.source_views_ = source.views
        self.shape_ = source.shape
        self._n_features_out = self.transform(X).shape[1]
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed samples."""
        check_is_fitted(self)
        samples = torch.from_numpy(self._checked(X, reset=False))
        ready = self.source_views_.plain(raw(samples, self.shape_))
        embedded: NDArray[np.float32] = project_all(self.branch_, ready).features.numpy()
        return embedded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _checked(self, X: Any, reset: bool) -> NDArray[Any]:
        """Check images for what they are, and everything else as scikit-learn does."""
        if getattr(X, "ndim", 2) == 4:
            checked: NDArray[Any] = check_array(X, allow_nd=True, dtype=None)
            if reset:
                self.n_features_in_ = int(np.prod(checked.shape[1:]))
            return checked
        vectors: NDArray[Any] = validate_data(self, X, reset=reset, dtype=np.float32)
        return vectors
