"""The processes of clients: `python -m fencepost.workloads.clients.<program> CONFIG.json`.

SIGTERM asks them to finish and exit with 0. Their evidence is their segment, whole at any moment,
so that kill -9 is as good an end as any other.
"""
