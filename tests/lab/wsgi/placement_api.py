"""Placement for uwsgi; the script that Debian ships for this has another name in each release."""

from placement.wsgi import init_application  # type: ignore[import-not-found]

application = init_application()
