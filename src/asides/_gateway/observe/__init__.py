"""What became of the log and the metrics of a request: `logs`, `metrics`, and `report`, which feeds both."""
