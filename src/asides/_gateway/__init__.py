"""The gateway: stands between clients and model servers and makes thinking right for both.

The only room that knows a web server. What a reply means is told by `dialects`; nothing here looks for markers.
"""
