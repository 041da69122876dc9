"""The hosts on which nodes run: this machine, namespaces, containers and other machines."""
