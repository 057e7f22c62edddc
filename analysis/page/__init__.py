# SPDX-License-Identifier: BSD-3-Clause
"""The report as one HTML file: text and lists here, figures from analysis/figures, style.css and script.js put in whole."""
