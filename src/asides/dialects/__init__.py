"""The shapes of other people's APIs: requests and replies, read and written, without a socket.

One API per file, framing beside them. A dialect sees parts and events, never markers.
"""
