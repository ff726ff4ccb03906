"""Speed, beside others, in one run on one machine. Not part of the package; run with `make bench`."""
