"""The door to scikit-learn, by scikit-learn's own checks as far as they apply."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold.errors import BadInput
from twofold.sklearn import TwofoldEncoder


def small(**choices):
    return TwofoldEncoder(encoder="linear", width=4, steps=2, batch_size=8, **choices)


TYPED = {
    "check_do_not_raise_errors_in_init_or_set_params": (
        "these tests check annotations when a function is called, and this check calls __init__ with -1 for all"
    )
}


@parametrize_with_checks([small()], expected_failed_checks=lambda estimator: TYPED)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def blobs():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 120)
    return (generator.normal(size=(3, 6))[labels] * 4 + generator.normal(size=(120, 6))).astype(np.float32), labels


def test_it_stands_in_a_pipeline():
    x, y = blobs()
    pipeline = make_pipeline(TwofoldEncoder(encoder="mlp", width=32, epochs=20, batch_size=64), LogisticRegression())
    assert pipeline.fit(x, y).score(x, y) > 0.9


def test_images_are_embedded_too():
    images = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 8), dtype=np.uint8)
    encoder = TwofoldEncoder(encoder="convnet", width=2, steps=1, batch_size=8)
    assert encoder.fit_transform(images).shape == (40, 16)
    assert encoder.get_feature_names_out()[0] == "twofoldencoder0"


def test_one_seed_gives_one_embedding():
    x, _ = blobs()
    assert np.array_equal(small(random_state=1).fit_transform(x), small(random_state=1).fit_transform(x))
    assert not np.array_equal(small(random_state=1).fit_transform(x), small(random_state=2).fit_transform(x))


def test_a_wrong_parameter_is_one_sentence():
    with pytest.raises(BadInput, match="did you mean 'byol'"):
        TwofoldEncoder(method="boyl").fit(blobs()[0])
