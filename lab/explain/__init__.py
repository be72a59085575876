"""Predictions of `explain`, compared with what the judge and hardware counters measured."""
