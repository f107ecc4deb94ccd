"""The Global Land Manager (GLM): which polygon grows what, and which is left to habitat.

For polygon i, crop k and neighbour pair ij::

    maximise    (1 - w) * [ sum_ik A_i (p_k y_ik - c_k) x_ik  -  sum_i A_i c_h h_i ] / V
                  + w * [ sum_i A_i e_i h_i  +  g * sum_ij l_ij (e_i + e_j)/2 * d/10,000 * z_ij ] / C

    subject to  sum_k x_ik + h_i  =  1                     one class per polygon
                z_ij <= h_i,  z_ij <= h_j                  the pair counts where both are habitat
                sum_i A_i y_ik x_ik  >=  s_k S_k           supply floor of crop k, over the landscape
                m A  <=  sum_i A_i h_i  <=  M A            least and greatest habitat share
                x_ik = 0 where y_ik = 0, locked classes fixed;   x, h binary

=====  =====================  ==================================================================
A_i    ha                     geodesic area; A their sum
y_ik   t/ha                   yield
p_k    currency/t             price
c_k    currency/ha            cost of crop k; c_h of habitat (all 0 unless stated)
e_i    0..1                   ecological connectivity
l_ij   m                      border shared, or length along which the two face each other
d      m                      depth that turns l_ij into hectares (10,000 m2 each)
g      1                      adjacency gain
w      0..1                   connectivity weight
V      currency               what every polygon in its best crop sells for
C      ha                     connectivity with every polygon in habitat
S_k    t                      reference supply, see :class:`oracle.glm_config.FloorKind`
m, M   0..1                   habitat share
=====  =====================  ==================================================================

Both terms of the objective are shares of what is possible, so without costs the objective lies in 0..1; it has no unit.
V stays gross of costs: it only scales, so a cost lowers its own class and leaves w's meaning, plans at other costs and
the other classes alone, and it is above 0 wherever anything grows (what is left after costs need not be). With costs
the objective may be negative. Where V or C is 0 its term is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pulp

from oracle.coefficients import Coefficients
from oracle.plan import TOLERANCE


@dataclass(frozen=True, eq=False)
class PulpVariables:
    """The variables of :func:`pulp_model`, addressed as in the equations."""

    x: list[list[pulp.LpVariable]]
    """x[i][k], and x[i][K] for habitat: h_i."""
    z: list[pulp.LpVariable]
    """z[e] for the neighbour pair e."""


def pulp_model(c: Coefficients, *, relaxed: bool = False) -> tuple[pulp.LpProblem, PulpVariables]:
    """The GLM as written in this module's docstring, in PuLP; ``relaxed`` drops the integrality.

    The objective is multiplied by n, so that a polygon is worth about 1, and the supply rows are divided by their
    largest entry: the solver's tolerances are absolute. Floors and habitat share are asked for at half the
    :data:`TOLERANCE`, so that equal fields whose areas differ in the eighth digit do not decide what is feasible, and
    the solver's own tolerance still fits in. Constraints are named ``class_<i>``, ``pair_<e>_i``,
    ``pair_<e>_j``, ``floor_<k>``, ``habitat_least`` and ``habitat_greatest``.
    """
    n, habitat, asked = len(c), len(c.crops), TOLERANCE / 2
    category = pulp.LpContinuous if relaxed else pulp.LpInteger  # LpBinary would reset the bounds
    x = [
        [pulp.LpVariable(f"x_{i}_{k}", 0, int(allowed), category) for k, allowed in enumerate(row)]
        for i, row in enumerate(c.allowed)
    ]
    z = [pulp.LpVariable(f"z_{e}", 0, 1) for e in range(len(c.pair_i))]  # integral where h is
    h = [row[habitat] for row in x]

    model = pulp.LpProblem("GLM", pulp.LpMaximize)
    own = [(x[i][k], n * v) for i, row in enumerate(c.own.tolist()) for k, v in enumerate(row)]
    pairs = [(z[e], n * gain) for e, gain in enumerate(c.pair_gain.tolist())]
    model += pulp.LpAffineExpression(own + pairs)
    for i, row in enumerate(x):
        model += pulp.LpAffineExpression([(v, 1) for v in row]) == 1, f"class_{i}"
    for e, (i, j) in enumerate(zip(c.pair_i.tolist(), c.pair_j.tolist(), strict=True)):
        model += pulp.LpAffineExpression([(z[e], 1), (h[i], -1)]) <= 0, f"pair_{e}_i"
        model += pulp.LpAffineExpression([(z[e], 1), (h[j], -1)]) <= 0, f"pair_{e}_j"
    for k in np.flatnonzero(c.floor_t > 0).tolist():
        scale = floor_row_scale(c)[k]
        tonnes = [(x[i][k], t / scale) for i, t in enumerate(c.credited_t[:, k].tolist())]
        model += pulp.LpAffineExpression(tonnes) >= c.floor_t[k] / scale * (1 - asked), f"floor_{k}"
    least, greatest = c.habitat_share
    mean_area = c.area_ha.mean()
    area = pulp.LpAffineExpression([(h[i], a) for i, a in enumerate((c.area_ha / mean_area).tolist())])
    if least > 0:
        model += area >= (least - asked) * n, "habitat_least"
    if greatest < 1:
        model += area <= (greatest + asked) * n, "habitat_greatest"
    return model, PulpVariables(x, z)


def floor_row_scale(c: Coefficients) -> np.ndarray:
    """(K,) tonnes by which :func:`pulp_model` divides each supply row: its largest entry, 1 where that is 0."""
    largest = c.credited_t.max(axis=0)
    return np.where(largest > 0, largest, 1.0)
