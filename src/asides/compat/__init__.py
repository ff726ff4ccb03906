"""The interfaces people come from, each thin over the engine: `nexrl`, `selfai`, `tinker`, `thinking_parser`.

A module here knows its original's names, shapes and defaults; how text is read is the engine's alone.
"""
