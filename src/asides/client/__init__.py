"""A client for model servers: messages in, events out as they come. `Client` is in `asides.client.client`."""
