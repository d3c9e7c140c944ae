"""One change at a time per domain (case API-02): who comes second is told, never queued.

But for hvsvc's own work, which nobody asked for and which takes moments: that must not make
somebody's request fail, so a request lets it end first.
"""

from __future__ import annotations

from hvsvc.errors import AbortedError, Reason

#: who holds a lock for the moment in which an allocation in Placement is brought to the truth
ALLOCATION = "allocation"


class DomainLocks:
    """Held by operation id, in this process: hvsvc is the one service of its host."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._own_work: set[str] = set()

    def has_own_work(self, uuid: str) -> bool:
        """Whether it is held for what hvsvc does by itself: an allocation brought to the truth, or a re-apply."""
        return uuid in self._own_work

    def acquire(self, uuid: str, operation_id: str, *, own_work: bool = False) -> None:
        """Takes the domain's lock.

        :raises AbortedError: DOMAIN_BUSY, naming the operation that holds it.
        """
        holder = self._holders.setdefault(uuid, operation_id)
        if ALLOCATION == holder != operation_id:
            raise AbortedError(
                Reason.DOMAIN_BUSY,
                "the domain's allocation in Placement is being written this moment; nothing was changed; redo the "
                "request",
            )
        if holder != operation_id:
            raise AbortedError(
                Reason.DOMAIN_BUSY,
                f"operations/{holder} is changing this domain; nothing was changed; wait for it "
                "(hvctl operations watch), read the domain again, then redo the request",
                {"operation": f"operations/{holder}"},
            )
        if own_work:
            self._own_work.add(uuid)

    def release(self, uuid: str, operation_id: str) -> None:
        """Gives it back; nothing happens where this operation does not hold it."""
        if self._holders.get(uuid) == operation_id:
            del self._holders[uuid]
            self._own_work.discard(uuid)
