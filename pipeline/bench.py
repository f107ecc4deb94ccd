"""``landoracle bench``: how long things take on this machine, each beside a peer in the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from oracle.errors import ConfigurationError
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
    polygons: Annotated[
        list[int] | None, typer.Option(help="How many quarter sections; repeatable. 1,000, 3,000 and 10,000.")
    ] = None,
    gap: Annotated[float, typer.Option(help="Relative gap at which the solve and the peers stop.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="Seed of the landscape.")] = 0,
    floor: Annotated[float, typer.Option(help="Supply floor of every crop, share of potential / crops.")] = 0.8,
    relaxation: Annotated[bool, typer.Option(help="Time HiGHS's relaxation alone as well.")] = True,
    peer: Annotated[
        list[str] | None, typer.Option(help="Time another solver on the whole programme; repeatable, see below.")
    ] = None,
    peer_limit_s: Annotated[float, typer.Option(help="Time limit of each peer, seconds.")] = 120.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the growth of time with polygons into this PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Time the oracle on seeded landscapes: plan and bound, regret, the relaxation alone, and peers.

    Peers are highs (PuLP + HiGHS), cbc, scip and cp-sat (the last two need `pip install '.[bench]'`).

    Example: `landoracle bench oracle --polygons 10000 --peer highs --peer cbc`
    """
    from benchmarks.oracle import SIZES, Asked, draw_growth, growth_exponent, measure_all
    from benchmarks.peers import Peer

    with refusals():
        unknown = [p for p in peer or [] if p not in list(Peer)]
        if unknown:
            raise ConfigurationError(f"unknown peer {', '.join(unknown)}; there are {', '.join(Peer)}")
        peers = tuple(Peer(p) for p in peer or [])
        sizes = [Asked(n, gap, seed, floor, relaxation, peers, peer_limit_s) for n in sorted(set(polygons or SIZES))]
        found = measure_all(sizes, err.print)
        if plot is not None:
            draw_growth(found, plot)
    exponent = growth_exponent(found)
    if as_json:
        typer.echo(json.dumps({"sizes": [m.to_dict() for m in found], "growth_exponent": exponent}, indent=2))
        return
    table = Table(title="Oracle on quarter sections", title_justify="left", title_style="bold")
    for heading in ("polygons", "plan, s", "all, s", "gap", "decided", "memory, MB", "relaxation, s"):
        table.add_column(heading, justify="right")
    for p in peers:
        table.add_column(f"{p}, s (times the plan)", justify="right")
    for m in found:
        relaxed = "" if m.relaxation_s is None else f"{m.relaxation_s:.1f}"
        beside = [
            f"{t.seconds:.1f} ({'' if t.finished else '>= '}{m.faster_than(t):.0f}x"
            + (", no plan)" if g is None else f", plan {g:.0e} below)")
            for t, g in zip(m.peers, m.peer_gaps, strict=True)
        ]
        table.add_row(
            f"{m.asked.polygons:,}",
            f"{m.plan_s:.2f}",
            f"{m.solve_s:.1f}",
            f"{m.gap:.1e}",
            f"{m.decided:.1%}",
            f"{m.memory_peak_mb:,.0f}",
            relaxed,
            *beside,
        )
    out.print(table)
    if exponent is not None:
        out.print(f"time of the plan grows with the number of polygons to the power of {exponent:.2f}")


@bench_app.command("prompts")
def bench_prompts(
    polygons: Annotated[int, typer.Option(help="So many quarter sections.")] = 2_304,
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
