"""Apache Kafka of the ZooKeeper generation: brokers whose metadata an ensemble keeps."""
