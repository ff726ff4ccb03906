"""What operators see of requests: the log and the metrics. Both read the `RequestRecord` of a request that is over."""
