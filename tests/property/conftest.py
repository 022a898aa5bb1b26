"""Properties are never timed: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hangwatch", deadline=None)
settings.load_profile("hangwatch")
