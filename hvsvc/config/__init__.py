"""The daemon's settings: read once from TOML, checked before anything starts, then frozen."""

from hvsvc.config.load import load_config
from hvsvc.config.model import Config

__all__ = ["Config", "load_config"]
