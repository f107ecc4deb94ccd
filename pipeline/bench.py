"""``landoracle bench``: how long things take on this machine, each beside a peer in the same run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from pipeline.terminal import JsonOption, err, out, refusals

bench_app = typer.Typer(no_args_is_help=True, help="Measure Landoracle itself; docs/benchmarks.md has figures.")


@bench_app.command("graph")
def bench_graph(
    polygons: Annotated[
        list[int] | None, typer.Option(help="How many quarter sections; repeatable. 10,000, 30,000 and 100,000.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each builder; the median counts.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Time the neighbour graph beside libpysal's strict rook contiguity, on the same polygons in the same run.

    Example: `landoracle bench graph --polygons 100000` (`--json` for machines)
    """
    from benchmarks.graph import SIZES, run

    with refusals(), err.status("measuring ..."):
        measured = run(polygons or SIZES, repeats)
    if as_json:
        typer.echo(json.dumps(measured.to_dict(), indent=2))
        return
    table = Table(title="Neighbour graph of quarter sections", title_justify="left", title_style="bold")
    for heading in ("polygons", "neighbour graph, s", "libpysal rook, strict, s", "ratio", "peak memory, MB"):
        table.add_column(heading, justify="right")
    for m in measured.sizes:
        seconds = (f"{m.graph_s:.2f}", f"{m.libpysal_s:.2f}", f"{m.ratio:.2f}")
        table.add_row(f"{m.polygons:,}", *seconds, f"{m.memory_peak_mb:,.0f} ({m.memory_before_mb:,.0f} before)")
    out.print(table)
    if measured.growth_exponent is not None:
        out.print(f"time grows with the number of polygons to the power of {measured.growth_exponent:.2f}")


@bench_app.command("oracle")
def bench_oracle(
    polygons: Annotated[int, typer.Option(help="At least so many quarter sections, in whole townships.")] = 10_000,
    gap: Annotated[float, typer.Option(help="Relative gap at which the solve and the peer stop.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="Seed of the landscape.")] = 0,
    peer: Annotated[bool, typer.Option("--peer", help="Time plain PuLP + HiGHS as well.")] = False,
    peer_limit_s: Annotated[float, typer.Option(help="Time limit of the peer, seconds.")] = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Time the oracle on a seeded landscape: the relaxation alone, the solve, and a peer.

    Example: `landoracle bench oracle --polygons 10000 --peer`
    """
    from benchmarks.oracle import benchmark_oracle

    with refusals():
        result = benchmark_oracle(
            polygons, gap=gap, seed=seed, peer=peer, peer_limit_s=peer_limit_s, progress=None if as_json else err.print
        )
    if as_json:
        out.print_json(json.dumps(result.to_dict()))
        return
    table = Table("measured", "value", title=f"{result.polygons:,} polygons, {result.pairs:,} neighbour pairs")
    table.add_row("relaxation alone", f"{result.relaxation_s:.1f} s")
    table.add_row("solve, with certificate and regret", f"{result.solve_s:.1f} s ({result.times_relaxation:.1f}x)")
    table.add_row("certified gap", f"{result.gap:.1e} (asked: {result.gap_asked:.0e})")
    table.add_row("labels", f"{result.unique:,} unique, {result.tied:,} tied, {result.undecided:,} undecided")
    if result.peer_s is not None and result.peer_limit_s is not None and result.times_faster is not None:
        limited = "at least " if result.peer_s >= result.peer_limit_s else ""
        found = "no plan" if result.peer_gap is None else f"plan {result.peer_gap:.1e} below the bound"
        table.add_row("plain PuLP + HiGHS", f"{result.peer_s:.1f} s, {found}")
        table.add_row("faster than it", f"{limited}{result.times_faster:.0f}x")
    out.print(table)


@bench_app.command("prompts")
def bench_prompts(
    polygons: Annotated[int, typer.Option(help="At least so many quarter sections, in whole townships.")] = 2_304,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each step; the median counts.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the landscape.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Time the longest prompts (order 2, five crops, full layout): rendering, a peer, and the whole dataset.

    Example: `landoracle bench prompts --polygons 10000`
    """
    from benchmarks.prompts import WANTED_PER_S, benchmark_prompts

    with refusals(), err.status("measuring ..."):
        result = benchmark_prompts(polygons, repeats, seed)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    described = f"{result.mean_neighbours:.1f} neighbours and {result.mean_characters:,.0f} characters each"
    table = Table("measured", "prompts per second", title=f"{result.prompts:,} prompts, {described}")
    table.add_row("rendering", f"{result.render_per_s:,.0f} ({result.times_peer:.0f}x the peer)")
    table.add_row("numbers collected and rendered", f"{result.collect_and_render_per_s:,.0f}")
    table.add_row("peer: template and json.dumps per prompt", f"{result.peer_per_s:,.0f}")
    table.add_row("whole dataset, in memory", f"{result.build_per_s:,.0f}")
    table.add_row("whole dataset, saved", f"{result.build_and_save_per_s:,.0f}")
    out.print(table)
    reached = "reached" if result.collect_and_render_per_s >= WANTED_PER_S else "missed"
    out.print(f"{WANTED_PER_S:,} a second wanted on one core: {reached}")
