"""Recorded replies, and an upstream inside the process that replays them. No model runs and no socket is opened."""
