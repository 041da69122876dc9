"""Sans-IO pieces of Kafka's protocol: frames, headers, requests."""
