"""The one way into every RPC: who calls, may they, is there room; then errors, log and metrics.

Servicers stay free of all of it. Unary and streaming handlers go through the same
`_Call`, whichever of gRPC's handler styles they are written in.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, TypeAlias

import grpc
import structlog
from google.longrunning.operations_pb2 import Operation
from google.protobuf.message import DecodeError

from hvsvc.errors import ExhaustedError, HvsvcError, InvalidArgumentError, Reason
from hvsvc.service.access import NEEDED, Access, Caller, Role, current_caller
from hvsvc.service.metrics import Metrics
from hvsvc.service.status import DETAILS_KEY, code_of, internal, to_trailer

# grpc's own classes take no type arguments; its stubs ask for them
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

#: unary, but as long as a stream
_WAIT: Final = "/google.longrunning.Operations/WaitOperation"
_LOGGED_NAME_CHARS: Final = 300
_QUIET_CODES: Final = (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED)

_log = structlog.stdlib.get_logger("hvsvc.rpc")


class Undecodable:
    """Stands for a request that is no message of its type."""


class Gate:
    """Bounds watches and waits, so that they leave room for short calls.

    :param long_calls: most of them at once.
    """

    def __init__(self, long_calls: int) -> None:
        self._limit = long_calls
        self._open = 0

    @contextmanager
    def enter(self, *, long: bool) -> Iterator[None]:
        """Takes a place for one call.

        :raises ExhaustedError: TOO_MANY_CALLS where all places for long calls are taken.
        """
        if long and self._open >= self._limit:
            raise ExhaustedError(
                Reason.TOO_MANY_CALLS,
                f"all {self._limit} places for watches and waits are taken; end one, or retry later",
                {"limit": self._limit},
            )
        self._open += long
        try:
            yield
        finally:
            self._open -= long


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every handler of the server."""

    def __init__(self, access: Access, gate: Gate, metrics: Metrics) -> None:
        self._access = access
        self._gate = gate
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """Returns the handler, wrapped; None for an unknown method, which gRPC answers UNIMPLEMENTED."""
        handler = await continuation(handler_call_details)
        return handler and self._wrap(handler_call_details.method, handler)

    def _wrap(self, method: str, handler: Any) -> _Handler:
        requests = "stream" if handler.request_streaming else "unary"
        responses = "stream" if handler.response_streaming else "unary"
        behaviour = getattr(handler, f"{requests}_{responses}")
        make = getattr(grpc, f"{requests}_{responses}_rpc_method_handler")
        wrapped: _Handler = make(
            self._guarded(method, behaviour, streams=handler.response_streaming),
            request_deserializer=_tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )
        return wrapped

    def _guarded(self, method: str, behaviour: Any, *, streams: bool) -> Any:
        # One coroutine for both of gRPC's styles: a generator handed to gRPC would be closed only when it is
        # collected, so a place in the gate would outlive its call.
        generator = inspect.isasyncgenfunction(behaviour)
        long = streams or method == _WAIT

        async def guarded(request: Any, context: _Context) -> Any:
            call = _Call(method, long, request)
            self._metrics.began(method)
            try:
                call.caller = self._access.identify(context)
                self._access.check(call.caller, method)
                call.check_decoded(request)
                with self._gate.enter(long=long), call.bound():
                    if not generator:
                        call.reply = await behaviour(request, context)
                        return call.reply
                    async with aclosing(behaviour(request, context)) as messages:
                        async for message in messages:
                            await context.write(message)
            except grpc.aio.AbortError:
                call.code = context.code()
                raise
            except asyncio.CancelledError:
                call.code = grpc.StatusCode.CANCELLED
                raise
            except HvsvcError as err:
                await call.refuse(context, err)
            except Exception as err:  # noqa: BLE001 - the last line: a bug must neither leak nor go unlogged
                await call.refuse(context, call.log_bug(err))
            finally:
                self._metrics.ended(method, call.code.name, None if long else call.took_s)
                call.log()
            return None

        return guarded


class _Call:
    """What one call leaves in the log."""

    def __init__(self, method: str, long: bool, request: Any) -> None:
        self.code = grpc.StatusCode.OK
        self.caller: Caller | None = None
        self.reply: Any = None
        self._method = method
        self._long = long
        self._reason: Reason | None = None
        self._started_s = time.monotonic()
        name = getattr(request, "name", "")
        self._subject = name[:_LOGGED_NAME_CHARS] if isinstance(name, str) else ""

    @property
    def took_s(self) -> float:
        """Since it began."""
        return time.monotonic() - self._started_s

    def check_decoded(self, request: Any) -> None:
        """Refuses what is no message."""
        if isinstance(request, Undecodable):
            raise InvalidArgumentError(Reason.INVALID_VALUE, f"the request is no message of {self._method}")

    @contextmanager
    def bound(self) -> Iterator[None]:
        """While it runs, servicers know the caller, and every line logged names it and the domain."""
        assert self.caller is not None, "only a call whose caller is known gets in"
        token = current_caller.set(self.caller)
        try:
            with structlog.contextvars.bound_contextvars(caller=self.caller.identity, **self._named()):
                yield
        finally:
            current_caller.reset(token)

    async def refuse(self, context: _Context, error: HvsvcError) -> None:
        """Ends the call with the error's status."""
        self.code, self._reason = code_of(error), error.reason
        status, packed = to_trailer(error)
        await context.abort(self.code, status.message, ((DETAILS_KEY, packed),))

    def log_bug(self, err: Exception) -> HvsvcError:
        """Keeps the traceback in the log, under an id that the caller learns."""
        error_id = uuid.uuid4().hex[:12]
        _log.error("bug", method=self._method, error_id=error_id, exc_info=err)
        return internal(error_id)

    def log(self) -> None:
        """The access log's line: every change and every refusal; reads that went well only for debugging."""
        quiet = NEEDED.get(self._method, Role.ADMIN) < Role.ADMIN and self.code in _QUIET_CODES
        fields: dict[str, object] = {"method": self._method, "code": self.code.name, **self._named()}
        if self.caller is not None:
            fields["caller"] = self.caller.identity
        if self._reason is not None:
            fields["reason"] = self._reason.value
        if isinstance(self.reply, Operation):
            fields["operation"] = self.reply.name
        _log.log(
            logging.DEBUG if quiet else logging.INFO, "rpc", took_ms=round(self.took_s * 1000, 2), **fields
        )

    def _named(self) -> dict[str, str]:
        if not self._subject:
            return {}
        return {"operation" if self._subject.startswith("operations/") else "domain": self._subject}


def _tolerant(deserializer: Any) -> Any:
    """gRPC would answer a malformed request with UNKNOWN and log a traceback; it is the caller's fault."""

    def deserialize(raw: bytes) -> Any:
        try:
            return deserializer(raw)
        except DecodeError:
            return Undecodable()

    return deserialize
