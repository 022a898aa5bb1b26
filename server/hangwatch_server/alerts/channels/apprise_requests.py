"""The requests of Apprise's plugins: by the proxy that the settings name, or by none.

Each plugin calls functions of the library `requests`, which read the environment of this process at
every call: a proxy there would see the messages and the secrets in their addresses, and a netrc
file would add passwords. There is no option for it, so a plugin's module is handed a `requests`
whose functions open sessions of ours.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# Where a site's own authority is named, for those who rely on it: it is no proxy and no secret.
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Requests:
    """The library `requests` as a plugin uses it, without the environment."""

    def __init__(self, proxy: str) -> None:
        import requests

        self._library, self._proxy = requests, proxy

    def __getattr__(self, name: str) -> Any:  # Any: whatever the library has
        return getattr(self._library, name)

    def request(self, method: str, url: str, **given: Any) -> Any:  # Any: as the library's own
        if given.get("verify", True) is True:
            given["verify"] = next(filter(None, map(os.environ.get, _AUTHORITIES)), True)
        with self._library.Session() as session:
            session.trust_env = False
            if self._proxy:
                session.proxies = {"http": self._proxy, "https": self._proxy}
            return session.request(method, url, **given)

    def get(self, url: str, **given: Any) -> Any:  # Any: as the library's own
        return self.request("GET", url, **given)

    def post(self, url: str, data: Any = None, **given: Any) -> Any:  # Any: as the library's own
        return self.request("POST", url, data=data, **given)

    def put(self, url: str, data: Any = None, **given: Any) -> Any:  # Any: as the library's own
        return self.request("PUT", url, data=data, **given)

    def delete(self, url: str, **given: Any) -> Any:  # Any: as the library's own
        return self.request("DELETE", url, **given)


def without_environment(service: Any, proxy: str) -> None:  # Any: a plugin of the library
    """All requests that this plugin makes from now on go by `proxy`, or straight where it is ""."""
    direct = Requests(proxy)
    for kind in type(service).__mro__:
        module = sys.modules[kind.__module__]
        if kind.__module__.startswith("apprise.") and hasattr(module, "requests"):
            module.requests = direct  # type: ignore[attr-defined]
