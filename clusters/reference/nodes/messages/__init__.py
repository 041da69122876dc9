"""The messages of nodes and clients, with Kafka's names; `codec/` has their bytes.

Every request has a `correlation`, the asker's own number, and its response repeats it. Kinds are
integers, and a response's is its request's plus one, so that a node branches without looking at a
type. Messages are values: never changed once sent, since sender, network and receiver share them.

Ids of topics are integers of 128 bits, -1 where a client named the topic instead. Errors are those
of `errors.py`. An epoch or offset that is not known is -1, as on Kafka's wire. Times are in ns.
"""
