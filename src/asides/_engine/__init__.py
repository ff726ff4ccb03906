"""The parser. Sans-IO: knows no format by name, no wire, no clock, no file."""
