"""Single values: several where one belongs, and other content than text, are refused."""

from collections.abc import Callable

import pytest
from lxml import etree

from hvsvc.domain.xml_values import (
    child,
    child_text,
    flag_attribute,
    memory_text,
    number_attribute,
    required,
)
from hvsvc.errors import FailedPreconditionError, Reason

ROOT = etree.fromstring(
    "<r n='7' bad='x' yes='yes' no='no' odd='on'><one>1</one><two/><two/><in><deep>d</deep></in><mixed>a<b/></mixed>"
    "<size unit='MiB'>3</size><empty/></r>"
)


def test_values_that_are_there() -> None:
    assert child_text(ROOT, "one") == "1"
    assert child_text(ROOT, "in/deep") == "d"
    assert number_attribute(ROOT, "n") == 7
    assert required(ROOT, "n") == "7"
    assert flag_attribute(ROOT, "yes") is True
    assert flag_attribute(ROOT, "no") is False
    assert memory_text(ROOT[-2]) == 3072


def test_values_that_are_not_there() -> None:
    assert child(ROOT, "none") is None
    assert child_text(ROOT, "none/deeper") == ""
    assert number_attribute(ROOT, "none") is None
    assert flag_attribute(ROOT, "none") is None
    assert memory_text(ROOT[-1]) == 0


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: child(ROOT, "two"), "<two> stands there 2 times"),
        (lambda: child_text(ROOT, "mixed"), "<mixed> must hold text only"),
        (lambda: number_attribute(ROOT, "bad"), "bad of <r>"),
        (lambda: flag_attribute(ROOT, "odd"), "odd of <r>"),
        (lambda: required(ROOT, "none"), "<r> lacks the attribute none"),
        (lambda: memory_text(ROOT[3]), "<in> must hold text only"),
    ],
)
def test_broken_values_are_refused_by_name(read: Callable[[], object], words: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        read()
    assert caught.value.reason is Reason.BROKEN_DEFINITION
    assert words in caught.value.message
