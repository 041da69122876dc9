"""The nodes of the reference cluster: sans-IO, KRaft's generation of protocols."""
