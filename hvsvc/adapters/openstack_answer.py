"""An HTTP answer of a service of OpenStack, and how its body is checked: it may be anything, from anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hvsvc.errors import Reason, UnavailableError

#: the most that a column of theirs holds; more would be beyond the messages of the API, too
MOST = 2**31 - 1
Amount = Annotated[int, Field(ge=0, le=MOST)]


class Part(BaseModel):
    """An object in an answer; what it has besides is not looked at."""

    model_config = ConfigDict(frozen=True, strict=True)


M = TypeVar("M", bound=Part)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who is believed to have answered, and the reason to give where it did not."""

    name: str
    reason: Reason

    def parse(self, model: type[M], answer: Answer) -> M:
        """The body as that model.

        :raises UnavailableError: `reason`, where it is not one.
        """
        try:
            return model.model_validate_json(answer.body)
        except ValidationError as err:
            fault = err.errors(include_url=False)[0]
            where = ".".join(str(part) for part in fault["loc"]) or "the whole of it"
            raise self.nonsense(f"{where}: {fault['msg']}") from err

    def nonsense(self, what: str) -> UnavailableError:
        """The error for an answer that this service would not give."""
        return UnavailableError(
            self.reason,
            f"{self.name}'s answer makes no sense ({what}); see whether something else answers at its address",
        )
