"""Files of replies: the one reader of every command that takes replies from files."""
