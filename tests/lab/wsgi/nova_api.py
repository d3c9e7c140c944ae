"""The compute API for uwsgi; the script that Debian ships for this has another name in each release."""

from nova.api.openstack.compute.wsgi import init_application  # type: ignore[import-not-found]

application = init_application()
