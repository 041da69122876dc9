"""Any release of Apache Kafka: fetch, format, configure, start, observe."""
