import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from twofold.evaluation import neighbours
from twofold.evaluation.neighbours import knn_accuracy, knn_predict, nearest, on_sphere


def cloud(n, dim=5, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def labels(n, classes=3, seed=0):
    return torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))


def cosines(bank, query):
    return [float(row @ query / (row @ row).sqrt() / (query @ query).sqrt()) for row in bank]


def voted(bank, bank_labels, query, k, temperature, weigh=lambda cosine, temperature: cosine / temperature):
    """Wu et al. 2018, eq. 13 for one query, its weights scaled so that the largest is one."""
    similarities = cosines(bank, query)
    order = sorted(range(len(bank)), key=lambda i: -similarities[i])[:k]
    votes = torch.zeros(int(bank_labels.max()) + 1, dtype=torch.float64)
    for i in order:
        weight = weigh(similarities[i], temperature) - weigh(similarities[order[0]], temperature)
        votes[bank_labels[i]] += torch.tensor(weight, dtype=torch.float64).exp()
    return int(votes.argmax())


@given(n=st.integers(1, 12), q=st.integers(1, 6), k=st.integers(1, 15), seed=st.integers(0, 99))
def test_the_nearest_are_those_with_the_largest_cosine(n, q, k, seed):
    bank, queries = cloud(n, seed=seed), cloud(q, seed=seed + 100)
    values, indices = nearest(bank, queries, k)
    assert indices.shape == (q, min(k, n))
    for query, found, rows in zip(queries, values, indices, strict=True):
        expected = cosines(bank, query)
        assert rows.tolist() == sorted(range(n), key=lambda i: -expected[i])[:k]
        assert found.tolist() == pytest.approx([expected[i] for i in rows], abs=1e-14)


def test_nearest_agrees_with_scikit_learn():
    bank, queries = cloud(300), cloud(40, seed=1)
    model = NearestNeighbors(n_neighbors=7, metric="cosine", algorithm="brute").fit(bank.numpy())
    distances, rows = model.kneighbors(queries.numpy())
    values, indices = nearest(bank, queries, 7)
    torch.testing.assert_close(values, 1 - torch.from_numpy(distances), rtol=0, atol=1e-14)
    assert torch.equal(indices, torch.from_numpy(rows))
    by_distance = NearestNeighbors(n_neighbors=7).fit(bank.numpy()).kneighbors(queries.numpy(), return_distance=False)
    assert not torch.equal(indices, torch.from_numpy(by_distance))  # lengths are to play no part


@pytest.mark.parametrize("temperature", [0.01, 0.07, 1.0])
def test_the_vote_agrees_with_scikit_learn_and_with_its_formula(temperature):
    bank, queries, known = cloud(200), cloud(60, seed=1), labels(200)
    model = KNeighborsClassifier(
        20, weights=lambda d: torch.from_numpy(-d / temperature).exp().numpy(), metric="cosine"
    )
    expected = torch.from_numpy(model.fit(bank.numpy(), known.numpy()).predict(queries.numpy()))
    found = knn_predict(bank, known, queries, 20, temperature)
    assert torch.equal(found, expected)
    assert found.tolist() == [voted(bank, known, query, 20, temperature) for query in queries]


def test_other_weights_would_be_noticed():
    bank, queries, known = cloud(200), cloud(60, seed=1), labels(200)
    found = knn_predict(bank, known, queries, 20, 0.07).tolist()
    assert found != [voted(bank, known, query, 20, 0.07, weigh=lambda cosine, _: 0.0) for query in queries]
    assert found != [voted(bank, known, query, 20, 0.07, weigh=lambda cosine, t: cosine * t) for query in queries]
    assert found != [voted(bank, known, query, 1, 0.07) for query in queries]


@pytest.mark.parametrize("rows_at_once", [1, 3, 10, 100])
def test_blocks_find_what_the_whole_finds(rows_at_once, monkeypatch):
    bank, queries = cloud(7), cloud(10, seed=1)
    values, indices = nearest(bank, queries, 4)
    seen = []

    def watched(points):
        seen.append(len(points))
        return on_sphere(points)

    monkeypatch.setattr(neighbours, "on_sphere", watched)
    monkeypatch.setattr(neighbours, "SIMILARITIES_AT_ONCE", 7 * rows_at_once + 6)
    in_blocks = nearest(bank, queries, 4)
    torch.testing.assert_close(in_blocks[0], values, rtol=0, atol=1e-14)
    assert torch.equal(in_blocks[1], indices)
    assert seen[1:] == [min(rows_at_once, 10 - start) for start in range(0, 10, rows_at_once)]


def test_a_bank_larger_than_a_block_is_met_one_query_at_a_time(monkeypatch):
    monkeypatch.setattr(neighbours, "SIMILARITIES_AT_ONCE", 3)
    assert nearest(cloud(7), cloud(2, seed=1), 4)[1].shape == (2, 4)


def test_a_tiny_temperature_lets_the_nearest_decide():
    bank, queries, known = cloud(50, dtype=torch.float32), cloud(20, seed=1, dtype=torch.float32), labels(50)
    values, indices = nearest(bank, queries, 10)
    assert (values[:, 0] / 1e-6).exp().isinf().any()  # what the formula as it is printed would add up
    assert torch.equal(knn_predict(bank, known, queries, 10, temperature=1e-6), known[indices[:, 0]])


def test_a_large_temperature_counts_heads():
    bank, queries, known = cloud(50), cloud(20, seed=1), labels(50, classes=2)
    _, indices = nearest(bank, queries, 9)
    majority = (known[indices].double().mean(dim=1) > 0.5).long()
    assert torch.equal(knn_predict(bank, known, queries, 9, temperature=1e9), majority)
    assert not torch.equal(known[indices[:, 0]], majority)


def test_a_bank_smaller_than_k_votes_whole():
    bank, queries, known = cloud(4), cloud(6, seed=1), torch.tensor([0, 0, 0, 1])
    assert nearest(bank, queries, 20)[1].shape == (6, 4)
    assert torch.equal(knn_predict(bank, known, queries, 20), knn_predict(bank, known, queries, 4))


@given(seed=st.integers(0, 99), scale=st.floats(1e-3, 1e3))
def test_lengths_play_no_part(seed, scale):
    bank, queries, known = cloud(20, seed=seed), cloud(5, seed=seed + 100), labels(20, seed=seed)
    lengths = cloud(20, 1, seed=seed + 200).exp()
    found = knn_predict(bank, known, queries, 5)
    assert torch.equal(knn_predict(lengths * bank, known, scale * queries, 5), found)


def test_in_a_collapsed_cloud_all_rows_are_equally_near():
    point = cloud(1, 64, dtype=torch.float32)
    rounded = torch.tensor([1.0, 1 / 3, 7.1, 0.013])[:, None] * point
    plain = (rounded / rounded.norm(dim=1, keepdim=True)) @ (point / point.norm()).T
    assert len(plain.unique()) > 1  # rounding does tell them apart
    values, _ = nearest(rounded, point, 4)
    assert torch.equal(values, torch.ones(1, 4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_compared_in_single_precision(dtype):
    bank, queries = cloud(30, dtype=dtype), cloud(8, seed=1, dtype=dtype)
    values, _ = nearest(bank, queries, 3)
    exact, _ = nearest(bank.double(), queries.double(), 3)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values.double(), exact, rtol=0, atol=torch.finfo(dtype).eps ** 2)


def test_accuracy_is_the_share_of_right_answers():
    bank, queries, known = cloud(50), cloud(20, seed=1), labels(50)
    answers = knn_predict(bank, known, queries)
    assert knn_accuracy(bank, known, queries, answers) == 1
    answers[:5] += 1
    assert knn_accuracy(bank, known, queries, answers) == 0.75


@pytest.mark.parametrize("length", [1e-30, 1.0, 1e30])
def test_every_row_is_put_on_the_sphere(length):
    points = cloud(5, dtype=torch.float32) * length
    points[3] = 0
    lengths = torch.linalg.vector_norm(on_sphere(points), dim=1)
    torch.testing.assert_close(lengths, torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0]))
