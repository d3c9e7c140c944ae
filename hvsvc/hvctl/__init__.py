"""hvctl, the command line client: stubs only, no libvirt."""
