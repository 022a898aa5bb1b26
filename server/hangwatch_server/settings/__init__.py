"""Every setting of the server: what it does and why it has its default. Nothing is read here.

Standard library only: the command line loads these before the server's other dependencies.
"""

from hangwatch_server.settings.server import ServerSettings, default_data_dir

__all__ = ["ServerSettings", "default_data_dir"]
