"""A cluster of Apache Kafka that migrates from ZooKeeper to KRaft."""
