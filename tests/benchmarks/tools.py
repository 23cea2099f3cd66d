"""`make bench NAME=tools`: speed of the tools; ratios where another program is the measure."""

from __future__ import annotations

from tests.benchmarks import _tools_data, _tools_source


def main() -> dict[str, object]:
    """Return the figures of the source tools and the data tools."""
    source, data = _tools_source.figures(), _tools_data.figures()
    return {
        "search_vs_ripgrep": source["search_vs_ripgrep"],
        "symbols_cpu_s": source["symbols_cpu_s"],
        "index_cpu_s": source["index_cpu_s"],
        "dump_mb_per_cpu_s": data["dump_mb_per_cpu_s"],
        "dump_peak_mb": data["dump_peak_mb"],
        "dump_cells_differ": data["dump_cells_differ"],
        "log_ready_s": data["log_ready_s"],
        "dispatch_s": data["dispatch_s"],
    }
