"""One module a group of commands; hvctl loads only the one it needs."""
