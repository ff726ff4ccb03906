"""What a format's output may be, as a structural tag for xgrammar: from the same data that reads it."""
