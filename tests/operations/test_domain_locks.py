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
