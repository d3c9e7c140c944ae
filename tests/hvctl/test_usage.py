"""Misunderstood command lines, as processes: what is said to write instead."""

from __future__ import annotations

import click
import pytest

from hvsvc.hvctl.main import cli
from hvsvc.hvctl.usage import WORDS
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.hvctl.conftest import Hvctl


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("setvcpus web-1 --vcpus 4", "hvctl setvcpus web-1 4"),
        ("setmem web-1 --memory 1GiB", "hvctl setmem web-1 1GiB"),
        ("scale web-1 --vcpus 4 --live", "--live and --config belong to setvcpus and setmem"),
        ("raise web-1 --max-vcpus 4 --config", "--live and --config belong to setvcpus and setmem"),
        ("scale web-1 --vcpus 4 --reboot", "write --reboot soft or --reboot never"),
        ("scale web-1 --vcpus eight", "'eight' is not a whole number from 1 to 4294967295"),
        ("setvcpus web-1 0", "'0' is not a whole number from 1 to 4294967295"),
    ],
)
def test_what_to_write_instead(hvctl: Hvctl, fake: FakeHvsvc, words: str, said: str) -> None:
    done = hvctl(*words.split())
    assert (done.returncode, fake.seen) == (2, [])
    assert said in done.stderr


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_an_option_are_those_that_it_takes(name: str) -> None:
    scale = cli.get_command(None, "scale")  # type: ignore[arg-type]
    assert scale
    (option,) = [param for param in scale.params if name in param.opts]
    assert isinstance(option.type, click.Choice)
    assert WORDS[name] == " or ".join(f"{name} {word}" for word in option.type.choices)


def test_another_unknown_option_has_no_hint(hvctl: Hvctl) -> None:
    assert "next:" not in hvctl("list", "--nonsense").stderr
