"""`asides run`: the command, the conversation, one reply, and which server is asked."""
