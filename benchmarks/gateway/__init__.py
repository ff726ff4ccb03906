"""The gateway's speed: a scripted upstream, a byte pass-through as the reference, a load generator that checks replies.

`python -m benchmarks.gateway` runs it. Every program runs in a process of its own, so that each one's time is its own.
"""
