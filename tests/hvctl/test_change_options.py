"""Options as fields; what each command sends is tested with the commands."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.change_options import affect_of
from hvsvc.v1 import scaling_pb2


@pytest.mark.parametrize(
    ("live", "config", "affect"),
    [
        (False, False, scaling_pb2.AFFECT_LIVE_AND_CONFIG),
        (True, True, scaling_pb2.AFFECT_LIVE_AND_CONFIG),
        (True, False, scaling_pb2.AFFECT_LIVE),
        (False, True, scaling_pb2.AFFECT_CONFIG),
    ],
)
def test_affect(live: bool, config: bool, affect: int) -> None:
    assert affect_of(live=live, config=config) == affect
