"""The dataset card: what the prompts are, for somebody who finds the folder (``card.md``)."""

from __future__ import annotations

from prompts.config import Context
from prompts.manifest import Manifest, SplitRecord


def dataset_card(manifest: Manifest) -> str:
    """The card in Markdown, from the manifest alone; the same manifest gives the same text."""
    config = manifest.prompts
    sources, split = manifest.sources, manifest.split_config
    total = sum(s.prompts for s in manifest.splits.values())
    seen = {
        0: "the central polygon alone",
        1: "the central polygon and its first-order neighbours",
        2: "the central polygon and its neighbours of first and second order",
    }[config.order]
    told = (
        "It also states prices that hold for the whole landscape and include the shadow prices of its supply floors. "
        "They come from the relaxation of the same landscape: one that nobody solved has none."
        if config.context is Context.PRICES
        else "It states nothing about the landscape as a whole."
    )
    block = f"{split.block_m:g} m" if split.block_m else f"{split.block_side:g} mean polygon widths"
    lines = [
        "# Land-use prompts",
        "",
        f"{total:,} prompts from {len(sources)} landscape(s). Each shows {seen}. {told}",
        "",
        "The label is the polygon's class in the optimum of the whole landscape (Global Land Manager, a mixed-integer "
        "programme).",
        "",
        f"Variant: order {config.order}, context {config.context}, style {config.style}, layout {config.layout}; "
        f"templates version {manifest.template_version}.",
        "",
        "## Splits",
        "",
        f"Training landscapes: blocks of {block} a side, {split.block_share:.0%} of the polygons wanted, drawn with "
        f"seed {split.seed}; training prompts stay at least {max(split.buffer, config.order)} neighbour steps away and "
        "show no polygon that a held-out prompt shows. `buffer` rows belong to neither side.",
        "",
        *_table(
            ["split", "prompts", "classes", "label status"],
            [[name, f"{s.prompts:,}", _shares(s, "classes"), _shares(s, "status")] for name, s in _splits(manifest)],
        ),
        "",
        "A label is `unique` where every other class is proven to cost the landscape something, `tied` where another "
        "class costs nothing, `undecided` where the solver's gap leaves it open.",
        "",
        "## Landscapes",
        "",
        *_table(
            ["landscape", "role", "polygons", "locked", "blocks held out", "gap", "solver", "SHA-256"],
            [
                [
                    s.landscape,
                    str(s.role),
                    f"{s.polygons:,}",
                    f"{s.locked:,}",
                    f"{len(s.held_out_blocks)}",
                    f"{s.gap:.1e}",
                    s.solver,
                    s.landscape_sha256[:12],
                ]
                for s in sources
            ],
        ),
        "",
        "## Notes",
        "",
        *[f"- {note}." for note in manifest.notes],
        "- Licence: prompts and labels follow the licence of the landscapes that they describe.",
        "- Hashes of every file, full hashes of every source and versions stand in `manifest.json`.",
    ]
    return "\n".join(lines) + "\n"


def _splits(manifest: Manifest) -> list[tuple[str, SplitRecord]]:
    return [(name, record) for name, record in manifest.splits.items() if record.prompts]


def _shares(record: SplitRecord, what: str) -> str:
    shares = record.classes if what == "classes" else record.status
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]
