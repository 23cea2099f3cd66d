"""Known-bug corpora, correctness by code, baselines, calibration, reports."""
