"""Generators keyed by (seed, round, client, purpose)."""

import torch

from fedsim.rng import derive_seed, torch_seeded


def test_seed_of_a_key_never_changes():
    # BLAKE2b of "0/1/2/dropout", 8 bytes, without the lowest bit: a change here changes every result ever recorded
    assert derive_seed(0, 1, 2, "dropout") == 3719375658264748528


def test_torch_is_seeded_inside_and_untouched_outside():
    before = torch.get_rng_state()
    with torch_seeded(0, 1, 2, "dropout"):
        first = torch.rand(4)
        after_four = torch.rand(4)
    assert torch.equal(torch.get_rng_state(), before)
    with torch_seeded(0, 1, 2, "dropout"):
        assert torch.equal(torch.rand(4), first)
    with torch_seeded(0, 1, 3, "dropout"):
        assert not torch.equal(torch.rand(4), first)
    assert not torch.equal(first, after_four)
