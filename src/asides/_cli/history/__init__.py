"""`asides history`: the command, and a module for each kind of its sub-commands."""
