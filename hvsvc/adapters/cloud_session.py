"""One signed-in session with a service of the cloud: HTTP in, errors of ours out. Blocks: for worker threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openstack.config
from keystoneauth1 import exceptions as keystone
from keystoneauth1.adapter import Adapter
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from openstack import exceptions as sdk
from requests import Response

from hvsvc.adapters.openstack_answer import Answer
from hvsvc.errors import (
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    NotPermittedError,
    Reason,
    UnavailableError,
)


@dataclass(frozen=True, slots=True)
class CloudService:
    """A service of the cloud: how it is found, spoken to, and what its failures are called.

    :ivar check: raises what an answer that is not a success stands for; it is given the
        answer and what was asked.
    """

    #: of hvsvc's configuration
    section: str
    service_type: str
    microversion: str
    unavailable: Reason
    not_permitted: Reason
    check: Callable[[Answer, str], None]


_ONE_TRY: dict[str, Any] = {
    "raise_exc": False,
    "connect_retries": 0,
    "status_code_retries": 0,
}


class WithdrawnError(Exception):
    """Nobody waits for the action any more."""


class Order:
    """Leave to ask for one action, until its time is over or it is withdrawn."""

    def __init__(self, timeout_s: float) -> None:
        self._end_s = time.monotonic() + timeout_s
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Takes the leave back."""
        self._withdrawn.set()

    def left_s(self) -> float:
        """What is left of its time; WithdrawnError where nothing is."""
        left_s = self._end_s - time.monotonic()
        if left_s <= 0 or self._withdrawn.is_set():
            raise WithdrawnError
        return left_s


class _Session(Session):
    """Refuses to sign in while it signs in.

    A Keystone that answers 401 to the question for its versions is asked again with a
    token, for which keystoneauth (5.18) waits for a lock that the same thread holds:
    the thread would be lost for good.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._of_thread = threading.local()

    def get_auth_headers(self, auth: BaseAuthPlugin | None = None) -> dict[str, str] | None:
        """Headers that carry the token, which is fetched where there is none."""
        if getattr(self._of_thread, "signs_in", False):
            raise keystone.Unauthorized("Keystone asks for a token to sign in with")
        self._of_thread.signs_in = True
        try:
            return super().get_auth_headers(auth)
        finally:
            self._of_thread.signs_in = False


class CloudSession:
    """Calls one service as the cloud's user.

    :param cloud: a name in clouds.yaml, or "envvars".
    :param io_timeout_s: longest silence of a connection; what an answer that drips in
        takes in all is bounded by the caller.
    """

    def __init__(self, cloud: str, io_timeout_s: float, service: CloudService) -> None:
        self._cloud = cloud
        self._service = service
        self._io_timeout_s = io_timeout_s
        self._lock = threading.Lock()
        self._adapter: Adapter | None = None

    def check(self) -> None:
        """Reads the cloud's configuration; FailedPreconditionError(NOVA_NOT_CONFIGURED) where it does not do."""
        self._configure()

    def forget(self) -> None:
        """Drops the session: the next call reads clouds.yaml anew, signs in again and asks for the endpoint."""
        with self._lock:
            self._adapter = None

    def get(self, path: str, what: str, *, microversion: str | None = None) -> Answer:
        """Reads `path`; `what` names it in errors. A newer microversion than the service's where it is given."""
        version = microversion or self._service.microversion
        with self._translated(what):
            response = self._signed_in().get(path, microversion=version, **_ONE_TRY)
            answer = _answer(response)
        return self._checked(answer, what)

    def post(self, path: str, body: object, what: str, order: Order) -> Answer:
        """Asks for an action, unless the order was withdrawn; after a failure it may have been taken or not."""
        return self._checked(self._send("POST", path, body, what, order), what)

    def put(self, path: str, body: object, what: str, order: Order) -> Answer:
        """Asks to replace what is at `path`, as `post`; the caller looks into a conflict (409)."""
        answer = self._send("PUT", path, body, what, order)
        return answer if answer.status == 409 else self._checked(answer, what)

    def _send(self, method: str, path: str, body: object, what: str, order: Order) -> Answer:
        answer = self._send_once(method, path, body, what, order)
        if answer.status == 401:
            # The token was revoked before its end: nothing was done, and a new one may do.
            self.forget()
            answer = self._send_once(method, path, body, what, order)
        return answer

    def _send_once(self, method: str, path: str, body: object, what: str, order: Order) -> Answer:
        with self._translated(what):
            # Signing in can take long: done before, so that no action leaves after its order was withdrawn.
            adapter = self._signed_in()
            adapter.get_token()
            adapter.get_endpoint()
            left_s = order.left_s()
            response = adapter.request(
                path,
                method,
                json=body,
                allow_reauth=False,
                timeout=left_s,
                microversion=self._service.microversion,
                **_ONE_TRY,
            )
            return _answer(response)

    def _checked(self, answer: Answer, what: str) -> Answer:
        if answer.status >= 500 or answer.status == 401:
            self.forget()
        self._service.check(answer, what)
        return answer

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except (keystone.Unauthorized, keystone.Forbidden) as err:
            self.forget()
            raise NotPermittedError(
                self._service.not_permitted,
                f"Keystone refused to sign in to cloud {self._cloud} (HTTP {err.http_status}); check the credential",
                {"cloud": self._cloud, "httpStatus": err.http_status},
            ) from err
        except (keystone.ConnectTimeout, WithdrawnError) as err:
            self.forget()
            raise DeadlineError(
                Reason.CALL_TIMED_OUT,
                f"cloud {self._cloud} was silent for too long ([{self._service.section}] call_timeout_s); see "
                f"whether Keystone and {self._service.section.title()} work, then ask again",
                {"cloud": self._cloud},
            ) from err
        except keystone.AuthPluginException as err:
            raise self._not_configured(err) from err
        except HvsvcError:
            raise
        except Exception as err:
            self.forget()
            raise UnavailableError(
                self._service.unavailable,
                f"cloud {self._cloud} cannot be reached for the {what}: {type(err).__name__}: {err}; see whether "
                f"Keystone and {self._service.section.title()} work, then ask again",
                {"cloud": self._cloud},
            ) from err

    def _signed_in(self) -> Adapter:
        with self._lock:
            if self._adapter is None:
                self._adapter = self._configure()
            return self._adapter

    def _configure(self) -> Adapter:
        try:
            clouds = openstack.config.OpenStackConfig(app_name="hvsvc", session_constructor=_Session)
            region = clouds.get_one(self._cloud, api_timeout=self._io_timeout_s)
            kind = self._service.service_type
            return Adapter(
                session=region.get_session(),
                service_type=region.get_service_type(kind),
                service_name=region.get_service_name(kind),
                interface=region.get_interface(kind),
                region_name=region.get_region_name(kind),
                endpoint_override=region.get_endpoint(kind),
            )
        except (
            sdk.SDKException,
            keystone.ClientException,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
        ) as err:
            raise self._not_configured(err) from err

    def _not_configured(self, err: Exception) -> FailedPreconditionError:
        return FailedPreconditionError(
            Reason.NOVA_NOT_CONFIGURED,
            f"cloud {self._cloud} ([nova] cloud) cannot be used; correct clouds.yaml or the OS_* environment: {err}",
            {"cloud": self._cloud},
        )


def _answer(response: Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)
