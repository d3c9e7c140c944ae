"""A body that is not what it should be: told as such, and in whose name."""

from __future__ import annotations

import pytest

from hvsvc.adapters.openstack_answer import MOST, Amount, Answer, Part, Speaker
from hvsvc.errors import Reason, UnavailableError

NOVA = Speaker("Nova", Reason.NOVA_UNAVAILABLE)


class Thing(Part):
    size: Amount


def answer(body: str) -> Answer:
    return Answer(200, {}, body.encode())


def test_what_is_asked_is_read_and_the_rest_is_not_looked_at() -> None:
    assert NOVA.parse(Thing, answer(f'{{"size": {MOST}, "more": [1]}}')).size == MOST


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("<html>", "the whole of it"),
        ("{}", "size"),
        ('{"size": "2"}', "size"),
        ('{"size": -1}', "size"),
        (f'{{"size": {MOST + 1}}}', "size"),
        ('{"size": true}', "size"),
    ],
)
def test_anything_else_makes_no_sense(body: str, where: str) -> None:
    with pytest.raises(UnavailableError, match=rf"Nova's answer makes no sense \({where}: ") as caught:
        NOVA.parse(Thing, answer(body))
    assert caught.value.reason is Reason.NOVA_UNAVAILABLE
