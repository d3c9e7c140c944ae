"""Puts the adapters together through the Protocols of `ports`; knows no libvirt, OpenStack or gRPC."""
