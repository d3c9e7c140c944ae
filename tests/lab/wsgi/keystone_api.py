"""Keystone for uwsgi; the script that Debian ships for this has another name in each release."""

from keystone.server.wsgi import initialize_public_application  # type: ignore[import-not-found]

application = initialize_public_application()
