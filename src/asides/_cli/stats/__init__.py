"""`asides stats`: the command, what it reads and the tables it prints."""
