"""One change at a time per domain."""

from __future__ import annotations

import pytest

from hvsvc.errors import AbortedError
from hvsvc.operations.domain_locks import DomainLocks


def test_only_the_holder_gives_a_lock_back() -> None:
    locks = DomainLocks()
    locks.acquire("a", "one")
    locks.acquire("b", "two")
    locks.release("a", "two")
    with pytest.raises(AbortedError, match="operations/one"):
        locks.acquire("a", "two")
    locks.release("a", "one")
    locks.acquire("a", "two")


def test_what_hvsvc_does_by_itself_is_told_apart() -> None:
    locks = DomainLocks()
    locks.acquire("a", "one", own_work=True)
    locks.acquire("b", "two")
    with pytest.raises(AbortedError):
        locks.acquire("b", "one", own_work=True)
    assert (locks.has_own_work("a"), locks.has_own_work("b")) == (True, False)
    locks.release("a", "two")
    assert locks.has_own_work("a")
    locks.release("a", "one")
    assert not locks.has_own_work("a")
