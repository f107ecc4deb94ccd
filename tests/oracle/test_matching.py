"""Column names: what they mean in English and French, in any spelling, and what is left to the recipe."""

import pytest

from oracle.matching import MatchedColumns, fold, match, match_columns
from oracle.recipe import Recipe, YieldUnit


def matched(*names: str, recipe: Recipe | None = None, words: tuple[str, ...] = ()) -> MatchedColumns:
    """Columns of numbers, but for ``words``."""
    return match_columns({**dict.fromkeys(names, True), **dict.fromkeys(words, False)}, recipe or Recipe(id="row"))


def test_names_match_whatever_their_case_accents_and_blanks() -> None:
    assert fold("Connectivité écologique ") == fold("CONNECTIVITE\u0301_E\u0301COLOGIQUE") == "connectivite_ecologique"
    assert match("soja", ["AVOINE", "soja ", "maïs"]) == ["soja "]
    assert match("id", ["ID", "id"]) == ["id"]  # an exact name is never ambiguous
    assert match("id", ["ID", "Id"]) == ["ID", "Id"]
    assert match("wheat_yield", ["Yield wheat (t/ha)", "oat_yield"]) == ["Yield wheat (t/ha)"]
    assert match("crop:code", ["crop_code"]) == ["crop_code"]  # fiboa's names in a format without colons
    assert match("ecological_connectivity", ["ecological"]) == ["ecological"]  # ten bytes of a Shapefile
    assert match("ecological_connectivity", ["ecology"]) == []


@pytest.mark.parametrize(
    ("column", "crop"),
    [
        ("wheat_yield", "wheat"),
        ("yield_wheat", "wheat"),
        ("Wheat Yield (t/ha)", "wheat"),
        ("CROP_WHEAT_YLD", "wheat"),
        ("WHEAT_YIEL", "wheat"),
        ("Rendement du blé", "wheat"),
        ("rendement_ble\u0301 [t/ha]", "wheat"),
        ("RDT MAÏS-GRAIN", "corn"),
        ("maize.yield", "corn"),
        ("Oats yield t ha-1", "oat"),
        ("soybeans_yield", "soy"),
        ("rendement soja", "soy"),
        ("yield of rapeseed", "canola"),
        ("durum_yield", "durum"),  # any other <crop>_yield is a crop, too
        ("spring_wheat_yield", "spring_wheat"),
    ],
)
def test_a_crop_s_yield_is_read_from_its_name(column: str, crop: str) -> None:
    found = matched(column, "ecological_connectivity")
    assert found.columns[f"{crop}_yield"] == column
    assert found.units == {crop: YieldUnit.T_HA}
    assert found.problems == found.guesses == ()


@pytest.mark.parametrize(
    "column", ["yield", "_yield", "Total Crop Yield", "yield_class", "regret_wheat_low", "wheaten"]
)
def test_other_names_are_no_yields(column: str) -> None:
    assert matched(column, "ecological_connectivity").crops == ()


def test_a_bare_crop_name_is_a_yield_only_where_it_holds_numbers_and_nothing_says_yield() -> None:
    bare = matched("Avoine", "ecological_connectivity")
    assert bare.columns["oat_yield"] == "Avoine"
    assert "does not say yield" in bare.guesses[0]
    assert matched("ecological_connectivity", words=("Avoine",)).crops == ()
    both = matched("oat", "oat_yield", "ecological_connectivity")
    assert both.columns["oat_yield"] == "oat_yield"


def test_units_stand_in_names_and_the_recipe_has_the_last_word() -> None:
    names = ("wheat_yield (kg/ha)", "oat yield [bu/ac]", "corn_yield_t_ha", "ecological_connectivity")
    assert matched(*names).units == {"wheat": YieldUnit.KG_HA, "oat": YieldUnit.BU_AC, "corn": YieldUnit.T_HA}
    tonnes = Recipe.model_validate({"id": "row", "yield_unit": "t/ha"})
    assert set(matched(*names, recipe=tonnes).units.values()) == {YieldUnit.T_HA}
    assert "states a unit that is not known here" in matched("rendement blé (q/ha)", "eco_con").problems[0]
    assert "bu/ac is known for" in matched("canola yield (bu/ac)", "eco_con").problems[0]
    named = Recipe.model_validate({"id": "row", "yield_unit": {"rye": "kg/ha"}})
    assert "yield_unit names rye, but the file has wheat" in matched("wheat_yield", "eco_con", recipe=named).problems


def test_what_could_be_two_columns_is_asked_for() -> None:
    (problem, listing) = matched("Wheat yield", "Rendement blé", "eco_con").problems
    assert "wheat_yield: it could be any of 'Wheat yield', 'Rendement blé'; name one in the recipe: `yields`" in problem
    assert listing.startswith("its columns are")
    one = Recipe.model_validate({"id": "row", "yields": {"wheat": "rendement ble"}})
    assert matched("Wheat yield", "Rendement blé", "eco_con", recipe=one).columns["wheat_yield"] == "Rendement blé"


def test_one_column_cannot_be_two_things() -> None:
    twice = Recipe.model_validate({"id": "row", "yields": {"wheat": "a", "oat": "A"}})
    assert "column 'a' cannot be all of wheat_yield, oat_yield" in matched("a", "eco_con", recipe=twice).problems


def test_ids_are_found_in_both_languages_but_never_guessed() -> None:
    for name in ("Id", "field_id", "ID parcelle", "Identifiant"):
        assert matched(name, "wheat_yield", "eco_con", recipe=Recipe()).columns["id"] == name
    (problem, _) = matched("farm_id", "wheat_yield", "eco_con", recipe=Recipe()).problems
    assert "no column 'id'; 'farm_id' looks like it. Name it in the recipe (`id`) or add it, or number" in problem
