"""`asides demo`: the command, and its part that asks a real gateway."""
