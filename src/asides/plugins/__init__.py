"""Plug-ins: asides inside other people's servers, frameworks and evaluations, one module per host.

A module imports its host, and nothing of asides imports the module: `import asides` stays as light as it is. Where the
host is missing or older than what the tests were run with, importing its module raises an `ImportError` of one line.
docs/plugins has a page for each.
"""
