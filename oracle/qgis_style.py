"""A GeoPackage that opens in its class colours: QGIS reads the default style of a layer from ``layer_styles``.

The table is registered in ``gpkg_contents`` as one of attributes, since QGIS looks for it there. QGIS opens it as a
layer, through GDAL: whatever hides it from GDAL's list of layers (the extension ``gdal_aspatial``, another
``data_type``) hides it from QGIS too. So readers that ask for no layer warn that there are two, and take the first,
the polygons; ``layer="labels"`` is without a warning.
"""

from __future__ import annotations

import sqlite3
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

_TABLE = """
CREATE TABLE layer_styles (
    id INTEGER PRIMARY KEY AUTOINCREMENT, f_table_catalog TEXT, f_table_schema TEXT, f_table_name TEXT,
    f_geometry_column TEXT, styleName TEXT, styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN, description TEXT,
    owner TEXT, ui TEXT, update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
)"""
_EDGE = "#333333"


def add_style(gpkg: Path, layer: str, column: str, colours: Mapping[str, str]) -> None:
    """Give ``layer`` a default style: per value of ``column`` a fill of ``colours[value]`` (``#rrggbb``)."""
    with closing(sqlite3.connect(gpkg)) as db, db:
        (geometry,) = db.execute(
            "SELECT column_name FROM gpkg_geometry_columns WHERE table_name = ?", (layer,)
        ).fetchone()
        db.execute(_TABLE)
        db.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) "
            "VALUES ('layer_styles', 'attributes', 'layer_styles')"
        )
        db.execute(
            "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, styleName, "
            "styleQML, styleSLD, useAsDefault, description, owner) VALUES ('', '', ?, ?, ?, ?, '', 1, ?, '')",
            (layer, geometry, column, categorised(column, colours), f"{column} in its class colours"),
        )


def categorised(column: str, colours: Mapping[str, str]) -> str:
    """QML of a categorised polygon style."""
    root = ET.Element("qgis", version="3.28.0", styleCategories="Symbology")
    renderer = ET.SubElement(root, "renderer-v2", type="categorizedSymbol", attr=column, symbollevels="0")
    categories, symbols = ET.SubElement(renderer, "categories"), ET.SubElement(renderer, "symbols")
    for number, (value, colour) in enumerate(colours.items()):
        ET.SubElement(categories, "category", value=value, label=value, symbol=str(number), render="true")
        symbol = ET.SubElement(symbols, "symbol", type="fill", name=str(number), alpha="1")
        fill = ET.SubElement(symbol, "layer", {"class": "SimpleFill", "enabled": "1", "pass": "0", "locked": "0"})
        options = ET.SubElement(fill, "Option", type="Map")
        for name, text in {
            "color": _rgba(colour),
            "style": "solid",
            "outline_color": _rgba(_EDGE),
            "outline_style": "solid",
            "outline_width": "0.1",
            "outline_width_unit": "MM",
        }.items():
            ET.SubElement(options, "Option", type="QString", name=name, value=text)
    return ET.tostring(root, encoding="unicode")


def _rgba(colour: str) -> str:
    return ",".join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5)) + ",255"
