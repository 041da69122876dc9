"""Bytes of Kafka's protocol and of its log formats, and the core's messages and records. Sans-IO.

Every offset of the metadata log is an end offset in the core ("everything below it") and, where a
protocol's field says so, the last offset on the wire: the difference is made here and nowhere else.
"""
