"""What yields a model's output: a client for servers, recorded replies. Each is a module of its own."""
