"""`asides batch`: files of raw outputs in, a file of columns out."""
