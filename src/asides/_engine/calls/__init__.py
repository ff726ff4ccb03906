"""The call grammars that a format may name."""
