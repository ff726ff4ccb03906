"""`asides audit`: what makes a server say a script, and what it makes of it."""
