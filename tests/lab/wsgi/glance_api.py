"""Glance for uwsgi; the script that Debian ships for this has another name in each release."""

from glance.common.wsgi_app import init_app  # type: ignore[import-not-found]

application = init_app()
