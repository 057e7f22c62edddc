# SPDX-License-Identifier: BSD-3-Clause
"""Random series of first order, AR(1): each value depends on the one before it."""

import math
import random

MEAN = 1.0


def series(correlation: float, length: int, random_numbers: random.Random, deviation: float = 0.1) -> list[float]:
    x, found = random_numbers.gauss(0, 1), []
    for _ in range(length):
        found.append(MEAN + deviation * x)
        x = correlation * x + math.sqrt(1 - correlation**2) * random_numbers.gauss(0, 1)
    return found
