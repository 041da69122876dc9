"""What a broker answers: followers' and consumers' fetches, producers, readers, and forwarding."""
