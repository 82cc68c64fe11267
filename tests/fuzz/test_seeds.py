# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The seeds in the corpus are those that seeds.py writes."""

import importlib.util
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def load_seeds():
    spec = importlib.util.spec_from_file_location("seeds", HERE / "seeds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_corpus_is_generated():
    seeds = load_seeds()
    wanted = seeds.files()
    found = {(path.parent.name, path.name): path.read_bytes()
             for path in sorted(seeds.CORPUS.glob(f"*/{seeds.PREFIX}*"))}
    absent = sorted(wanted.keys() - found.keys())
    assert absent == [], "tests/fuzz/seeds.py has not been run"
    extra = sorted(found.keys() - wanted.keys())
    assert extra == [], "tests/fuzz/seeds.py does not write these files"
    changed = [name for name, data in wanted.items() if found[name] != data]
    assert changed == [], "tests/fuzz/seeds.py writes something else"


def test_seeds_are_small():
    """A seed does one thing; libFuzzer makes the long inputs."""
    sizes = {name: len(data) for name, data in load_seeds().files().items()}
    assert {target for target, _ in sizes} == {"cmd", "packet", "tso", "vf", "wqe"}
    long = {name: size for name, size in sizes.items() if size > 400}
    assert long == {}, "at most 400 bytes are allowed"
