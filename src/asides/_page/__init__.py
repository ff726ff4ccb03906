"""The web page that comes with the gateway: its files, and the read API under `/asides/` that it speaks.

Nothing here knows a web server: `files` has bytes and headers, the other modules turn questions into plain data, and
`_gateway.page` carries both over HTTP.
"""
