"""Pipeline: the Dagster code location and the command line. It wires the other packages and computes nothing."""
