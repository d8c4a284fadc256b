import pytest
import torch

from twofold.networks import ResNet, resnet18, resnet34, resnet50

PUBLISHED_WEIGHTS = {resnet18: 11_689_512, resnet34: 21_797_672, resnet50: 25_557_032}
"""Weights of torchvision's models, with a classifier of 1000 classes."""


def torchvision_names(depths: list[int], convolutions: int, projected_first_stage: bool) -> set[str]:
    """Write torchvision's naming scheme out: what its state dicts hold, the classifier included."""
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    names = {"conv1.weight", "fc.weight", "fc.bias", *(f"bn1.{part}" for part in norm)}
    for stage, depth in enumerate(depths, start=1):
        for block in range(depth):
            here = f"layer{stage}.{block}"
            for i in range(1, convolutions + 1):
                names |= {f"{here}.conv{i}.weight", *(f"{here}.bn{i}.{part}" for part in norm)}
            if block == 0 and (stage > 1 or projected_first_stage):
                names |= {f"{here}.downsample.0.weight", *(f"{here}.downsample.1.{part}" for part in norm)}
    return names


@pytest.mark.parametrize(
    ("build", "depths", "convolutions", "projected", "features"),
    [
        (resnet18, [2, 2, 2, 2], 2, False, 512),
        (resnet34, [3, 4, 6, 3], 2, False, 512),
        (resnet50, [3, 4, 6, 3], 3, True, 2048),
    ],
)
def test_names_and_sizes_are_torchvisions(build, depths, convolutions, projected, features):
    model = build()
    assert set(model.state_dict()) | {"fc.weight", "fc.bias"} == torchvision_names(depths, convolutions, projected)
    weights = sum(weight.numel() for weight in model.parameters())
    assert weights + 1000 * features + 1000 == PUBLISHED_WEIGHTS[build]


def test_a_state_dict_with_a_classifier_loads_and_its_owner_keeps_it():
    state = {**resnet18(width=4).state_dict(), "fc.weight": torch.zeros(1000, 32), "fc.bias": torch.zeros(1000)}
    model = resnet18(width=4)
    model.load_state_dict(state)
    assert torch.equal(model.conv1.weight, state["conv1.weight"])
    assert "fc.weight" in state


def test_a_state_dict_that_lacks_a_weight_is_refused():
    state = resnet18(width=4).state_dict()
    del state["layer3.0.downsample.0.weight"]
    with pytest.raises(RuntimeError, match="downsample"):
        resnet18(width=4).load_state_dict(state)


@pytest.mark.parametrize(("stem", "places"), [("small", 16), ("imagenet", 4)])
def test_the_stem_decides_the_resolution(stem, places):
    model = resnet18(width=4, stem=stem)
    seen = []
    model.layer1.register_forward_hook(lambda module, inputs, out: seen.append(out.shape[-1]))
    assert model(torch.randn(2, 3, 16, 16)).shape == (2, 32)
    assert seen == [places]


def test_one_channel_and_width():
    assert isinstance(resnet18(channels=1, width=8), ResNet)
    assert resnet50(channels=1, width=2)(torch.randn(2, 1, 32, 32)).shape == (2, 64)
