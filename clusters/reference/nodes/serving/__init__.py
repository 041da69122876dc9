"""The services of a broker: fetches of followers and consumers, producers, readers, forwarding."""
