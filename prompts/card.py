"""The dataset card: what the prompts are, for somebody who finds the folder (``card.md``)."""

from __future__ import annotations

from prompts.config import Context, Labels
from prompts.manifest import Manifest, SourceRecord, SplitRecord
from prompts.prices import PRICE_DECIMALS

SHOWN = {
    0: "the central polygon alone",
    1: "the central polygon and its first-order neighbours",
    2: "the central polygon and its neighbours of first and second order",
}
STATED = {
    Context.NONE: "It states nothing about the landscape as a whole.",
    Context.SUPPLY: "It also states the supply floor and the reference supply of each crop in the whole landscape, "
    "which are known before anybody solves it.",
    Context.PRICES: "It also states prices that hold for the whole landscape and include the shadow prices of its "
    "supply floors. They come from the relaxation of the same landscape: one that nobody solved has none.",
}
BLOCKS = ("range of the yields", "block", "blocks held out")
TIED = {
    Labels.KEEP: "Tied labels are kept, and the oracle's class, chosen by its written rule, is the only right answer "
    "(the default, `labels: keep`).",
    Labels.DROP_TIED: "Polygons with a tied label became no row (`labels: drop_tied`).",
    Labels.ACCEPT_SET: "Tied labels are kept, and `accepted` holds every class that ties: each is a right answer "
    "(`labels: accept_set`).",
}


def dataset_card(manifest: Manifest) -> str:
    """The card in Markdown, from the manifest alone; the same manifest gives the same text."""
    config, sources = manifest.prompts, manifest.sources
    total = sum(s.prompts for s in manifest.splits.values())
    lines = [
        "# Land-use prompts",
        "",
        f"{total:,} prompts from {len(sources)} landscape(s). Each shows {SHOWN[config.order]}. "
        f"{STATED[config.context]}",
        "",
        "The label is the polygon's class in the optimum of the whole landscape (Global Land Manager, a mixed-integer "
        "programme).",
        "",
        f"Variant: order {config.order}, context {config.context}, style {config.style}, layout {config.layout}; "
        f"templates version {manifest.template_version}.",
        "",
        "Numbers are rounded, and the columns of the rows hold them as printed: yields (t/ha) to "
        f"{config.yield_digits} decimals and prices to {PRICE_DECIMALS}, each with one less for every digit before the "
        f"point beyond the first; connectivity to {config.connectivity_digits} decimals; supply to whole tonnes.",
        "",
        "## Splits",
        "",
        *_splits_text(manifest),
        "",
        *_table(
            ["split", "prompts", "95 % interval at 65 % / 50 %", "classes", "label status"],
            [
                [name, f"{s.prompts:,}", _interval(s), _shares(s, "classes"), _shares(s, "status")]
                for name, s in manifest.splits.items()
                if s.prompts
            ],
        ),
        "",
        "The interval is the width, in points, of the Wilson interval that a measured accuracy of 65 % (and of 50 %, "
        "the widest) will have.",
        "",
        "A label is `unique` where every other class is proven to cost the landscape something, `tied` where another "
        "class costs nothing, `undecided` where the solver's gap leaves it open; `regret_low` and `regret_high` say "
        f"between which bounds each class costs. {TIED[config.labels]}",
        "",
        *_tokens(manifest),
        "## Landscapes",
        "",
        *_table(
            ["landscape", "role", "polygons", "locked", *BLOCKS, "gap", "solver", "SHA-256"],
            [_landscape(s) for s in sources],
        ),
        "",
        "## Notes",
        "",
        *[f"- {note}." for note in manifest.notes],
        "- Licence: prompts and labels follow the licence of the landscapes that they describe.",
        "- Hashes of every file, full hashes of every source and versions stand in `manifest.json`.",
    ]
    return "\n".join(lines) + "\n"


def _splits_text(manifest: Manifest) -> list[str]:
    split = manifest.split_config
    if split.block_m is not None:
        side = f"{split.block_m:g} m a side, as set"
    elif split.block_side is not None:
        side = f"{split.block_side:g} mean polygon widths a side, as set"
    else:
        side = "as long as the yields of the landscape resemble each other (table below)"
    return [
        f"Training landscapes: blocks {side}, {split.block_share:.0%} of the polygons wanted, drawn with seed "
        f"{split.seed}; training prompts stay at least {max(split.buffer, manifest.prompts.order)} neighbour steps "
        "away and show no polygon that a prompt of a held-out block or landscape shows. `buffer` rows belong to "
        "neither side.",
        "",
        f"`held_out_random` is drawn from what would be trained on, {split.random_share:.0%} of it. It leaks by its "
        "nature: its polygons are not trained on, but training prompts around them show them. Use it only to see what "
        "a random split would have claimed.",
        *_copies_text(manifest),
    ]


def _copies_text(manifest: Manifest) -> list[str]:
    names = manifest.augment.names
    if not names:
        return []
    return ["", f"Training prompts come with {len(names)} copies each that have the same label: {', '.join(names)}."]


def _tokens(manifest: Manifest) -> list[str]:
    tokens = manifest.tokens
    if tokens is None:
        return []
    figures = (tokens.least, tokens.median, tokens.percentile_95, tokens.greatest, tokens.limit)
    return [
        "## Tokens",
        "",
        f"Per prompt, its chat template included, counted by {tokens.tokenizer}.",
        "",
        *_table(["least", "median", "95th percentile", "most", "limit"], [[f"{n:,}" for n in figures]]),
        "",
    ]


def _landscape(s: SourceRecord) -> list[str]:
    return [
        s.landscape,
        str(s.role),
        f"{s.polygons:,}",
        f"{s.locked:,}",
        "" if s.yield_range_m is None else f"{s.yield_range_m / 1000:.1f} km",
        f"{s.block_m / 1000:.1f} km ({s.block_rule})",
        f"{len(s.held_out_blocks)}",
        f"{s.gap:.1e}",
        s.solver,
        s.landscape_sha256[:12],
    ]


def _interval(record: SplitRecord) -> str:
    width = record.interval
    return "" if width is None else f"{100 * width.at_65:.1f} / {100 * width.at_50:.1f}"


def _shares(record: SplitRecord, what: str) -> str:
    shares = record.classes if what == "classes" else record.status
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]
