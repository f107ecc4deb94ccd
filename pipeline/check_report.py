"""What `landoracle landscape check` says about a file: a table for readers, the same values for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oracle.errors import name_some
from oracle.intake import Inspection, IntakeReport
from oracle.landscape import YIELD_SUFFIX
from oracle.neighbours import NeighbourGraph
from oracle.remarks import Remark


def as_json_values(inspection: Inspection, graph: NeighbourGraph | None) -> dict[str, Any]:
    """The intake report in plain types; for a usable file also its crops and its neighbour graph in figures."""
    values = inspection.report.to_dict()
    if inspection.landscape is not None and graph is not None:
        values |= {
            "crops": list(inspection.landscape.crops),
            "neighbour_pairs": len(graph.shared[0]),
            "components": int(graph.components.max()) + 1,
            "component_sizes": [int(n) for n in sorted(np.bincount(graph.components), reverse=True)],
            "isolated_polygons": len(graph.isolated),
            "isolated": [str(i) for i in graph.isolated],
        }
    return values


def print_report(inspection: Inspection, graph: NeighbourGraph | None, console: Console) -> None:
    """Sections: read, matched, repaired, left out, looks wrong, areas, neighbours; then what is in the way."""
    report = inspection.report
    title = f"{report.file} is usable" if report.usable else f"{report.file} is not a usable landscape"
    table = Table(title=title, show_header=False, title_justify="left", title_style="bold", show_lines=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for section, lines in (
        ("read", _read(report)),
        ("matched", _matched(report)),
        ("repaired", _remarks(report.repairs)),
        ("left out", _remarks(report.dropped)),
        ("looks wrong", _remarks(report.warnings)),
        ("areas", _areas(inspection)),
        ("neighbours", _neighbours(graph)),
    ):
        if lines and report.rows:
            table.add_row(section, escape("\n".join(lines)))
    if report.problems:
        table.add_row("[red]refused[/]", escape("\n".join(f"- {problem}" for problem in report.problems)))
    console.print(table)


def _read(report: IntakeReport) -> list[str]:
    layer = f" of layer {report.layer}" if report.layer else ""
    crs = f"CRS {report.crs}, stated by the {report.crs_from}" if report.crs else "no CRS that fits"
    return [f"{report.rows:,} rows{layer}; {report.polygons:,} usable polygons", crs]


def _matched(report: IntakeReport) -> list[str]:
    units = report.units or {}
    lines = []
    for contract, column in (report.columns or {}).items():
        unit = units.get(contract.removesuffix(YIELD_SUFFIX)) if contract.endswith(YIELD_SUFFIX) else None
        lines.append(f"{contract} <- {column}{f' in {unit}' if unit else ''}")
    return lines or ["nothing"]


def _remarks(remarks: Sequence[Remark]) -> list[str]:
    return [str(remark) for remark in remarks] or ["nothing"]


def _areas(inspection: Inspection) -> list[str]:
    report = inspection.report
    if report.area_ha is None:
        return ["not measured"]
    lines = [f"{report.area_ha:,.2f} ha (geodesic)"]
    if inspection.landscape is not None:
        each = inspection.landscape.areas_ha
        lines[0] += f"; polygons {each.min():,.2f} to {each.max():,.2f} ha, median {np.median(each):,.2f} ha"
    if report.double_ha:
        lines.append(f"{report.double_ha:,.2f} ha of it counted more than once")
    return lines


def _neighbours(graph: NeighbourGraph | None) -> list[str]:
    if graph is None:
        return ["not looked for: the file is refused"]
    sizes = np.sort(np.bincount(graph.components))[::-1]
    lines = [f"{len(graph.shared[0]):,} pairs share a border or face each other over a gap"]
    parts = "1 component" if len(sizes) == 1 else f"{len(sizes):,} components of {name_some(sizes)} polygons"
    isolated = f"; {len(graph.isolated):,} isolated ({name_some(graph.isolated)})" if len(graph.isolated) else ""
    return [*lines, f"{parts}{isolated}"]
