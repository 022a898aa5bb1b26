"""The pages that people look at: rendered here, kept fresh by one event stream each.

A page asks `watch`, `captures` or `db` and shows what they say; it computes nothing. `router` has
every page; `install` adds it and the static files to an application.
"""

from hangwatch_server.pages.app import install, router

__all__ = ["install", "router"]
