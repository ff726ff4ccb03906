"""The gateway: between clients and model servers, it splits thinking and calls off answers, for every dialect.

The only package that knows a web server. A request goes through `app` (routes, keys, limits), `plan` (what the upstream
is sent), `exchange` (the answer as it comes) and `pipeline` (bytes to bytes); `record` has what the log and the metrics
say of it. APIs are the business of `dialects`, markers that of the engine: nothing here looks for either.
"""
