"""The configuration of the commands: what `asides.yaml`, the environment and the flags may say. Starts nothing."""

from __future__ import annotations
