"""Recipes: what they accept, and that a mistake is named with its file and key."""

from pathlib import Path

import pytest
import yaml

from oracle.errors import ConfigurationError
from oracle.glm_config import GLMConfig
from oracle.recipe import Recipe, YieldUnit, load_recipe, recipe_for, to_t_ha

RECIPES = Path(__file__).parents[2] / "data" / "recipes"


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return path


def test_units_by_hand() -> None:
    assert to_t_ha("canola", YieldUnit.KG_HA) == 0.001
    assert 46 * to_t_ha("wheat", YieldUnit.BU_AC) == pytest.approx(3.09, abs=0.005)
    assert 86 * to_t_ha("oat", YieldUnit.BU_AC) == pytest.approx(3.28, abs=0.005)
    # 60 lb of 0.45359237 kg on an acre of 0.40468564 ha
    assert to_t_ha("soy", YieldUnit.BU_AC) == pytest.approx(60 * 0.45359237 / 0.40468564 / 1000, rel=1e-5)


def test_a_recipe_in_full(tmp_path: Path) -> None:
    recipe = load_recipe(
        written(
            tmp_path,
            """
            id: row
            yields: {wheat: W, corn: C}
            yield_unit: {wheat: kg/ha, corn: bu/ac}
            connectivity: eco
            land_uses: {146: wheat, 110: habitat}
            glm: {connectivity_weight: 0.3, prices: {wheat: 280, corn: 200}}
            """,
        )
    )
    assert recipe.unit_of("wheat") == YieldUnit.KG_HA
    assert recipe.unit_of("corn") == YieldUnit.BU_AC
    assert recipe.land_uses == {"146": "wheat", "110": "habitat"}
    assert recipe.glm.connectivity_weight == 0.3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yeilds: {wheat: W}", "yeilds: unknown setting; known are name, role, layer, crs, id, yields"),
        ("glm: {price: {wheat: 1}}", "glm.price: unknown setting; known are connectivity_weight"),
        ("yield_unit: lb/ac", "yield_unit"),
        ("glm: {connectivity_weight: 2}", r"glm\.connectivity_weight: .*less than 1.*found 2"),
        ("yields: {canola: C}\nyield_unit: bu/ac", "bu/ac is known for wheat, soy, corn, oat only; convert canola"),
        ("yields: {wheat: W}\nyield_unit: {oat: t/ha}", "names oat, which `yields` does not"),
        ("yields: {wheat: W, oat: O}\nyield_unit: {oat: t/ha}", "no unit for wheat"),
        ("id: [", "not YAML"),
        ("- wheat", "file: "),
        ("name: 2024-13-45", "not YAML"),
        (r'id: "\ud800"', "not YAML"),
        ("a: &a [*a]", "a: unknown setting"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_recipe(written(tmp_path, text))
    assert "recipe.yaml" in str(caught.value)


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.yaml: the recipe cannot be read"):
        load_recipe(tmp_path / "none.yaml")


def test_the_recipe_given_wins_over_the_one_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "farm.geojson"
    assert recipe_for(file) == Recipe()
    (tmp_path / "farm.yaml").write_text("connectivity: beside")
    assert recipe_for(file).connectivity == "beside"
    assert recipe_for(file, written(tmp_path, "connectivity: given")).connectivity == "given"


def test_a_recipe_is_found_beside_files_with_two_suffixes(tmp_path: Path) -> None:
    (tmp_path / "farm.yml").write_text("connectivity: beside")
    assert recipe_for(tmp_path / "farm.gdb.zip").connectivity == "beside"
    assert recipe_for(tmp_path / "farm2.zip") == Recipe()


def test_rescaling_has_a_short_form() -> None:
    assert Recipe.model_validate({"connectivity": "rescale"}) == Recipe(rescale_connectivity=True)
    assert Recipe.model_validate({"connectivity": "eco", "rescale_connectivity": True}).connectivity == "eco"


def test_units_per_crop_may_wait_for_the_file() -> None:
    recipe = Recipe.model_validate({"yield_unit": {"wheat": "kg/ha"}})
    assert recipe.unit_of("wheat") == YieldUnit.KG_HA
    assert recipe.unit_of("oat") is None


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda p: p.stem)
def test_the_recipes_in_data_are_complete(path: Path) -> None:
    recipe = load_recipe(path)
    crops = tuple(recipe.yields)
    assert len(recipe.glm.price_of(crops)) == len(crops)
    assert set(recipe.glm.supply_floors) <= set(crops)


def test_the_recipe_of_the_readme_is_one_and_shows_every_key() -> None:
    readme = (Path(__file__).parents[2] / "data" / "landscapes" / "README.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(readme.split("```yaml\n")[1].split("```")[0])
    Recipe.model_validate(shown)
    assert set(shown) == set(Recipe.model_fields)
    assert set(shown["glm"]) >= set(GLMConfig.model_fields) - {"method", "proof_nodes", "threads", "seed"}
