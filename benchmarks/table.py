"""JSON lines of the benchmarks as Markdown tables: `python -m benchmarks.table < lines > docs/benchmarks.part.md`."""

import json
import sys
from collections.abc import Callable

Line = dict[str, object]

HEADINGS = {
    "inverse": "The inverse, float32, in one process",
    "peers": "Fit, and top-100 for all users: each system in its own process",
    "large": "The big fits (EASE), each in its own process",
    "tuning": "Tuning: the paper's grid, and the search with a budget",
    "evaluation": "Evaluation: many ξ from one projection, and metrics beside ranking",
}

COLUMNS: dict[str, dict[str, str | Callable[[Line], object]]] = {
    "inverse": {
        "n": "n",
        "relae s": "relae_s",
        "sgemm for n³ flops s": "sgemm_n3_s",
        "**relae / sgemm**": "relae_over_sgemm",
        "numpy float32 / relae": "numpy_float32_over_relae",
        "scipy float32 / relae": "scipy_float32_over_relae",
        "numpy float64 / relae": "numpy_float64_over_relae",
    },
    "large": {
        "data": "data",
        "solver": lambda line: f"{line['solver']}, {line['square']:,}²",
        "fit s": "fit_s",
        "**fit / sgemm**": "fit_over_sgemm",
        "Gram s": "gram_s",
        "residual": lambda line: f"{line['residual']:.0e}",
        "square GiB": "square_gib",
        "**peak GiB**": "fit_peak_gib",
        "forecast / peak": "forecast_over_peak",
        "top-100, users": lambda line: f"{line['recommend_users']:,} in {line['recommend_s']} s",
        "500 new users s": "new_500_users_s",
    },
    "evaluation": {
        "users × items": lambda line: f"{line['users']:,} × {line['items']:,}",
        "one ξ s": "one_xi_s",
        "eleven ξ s": "eleven_xis_s",
        "top-100 of one ξ s": "top_k_of_one_s",
        "**eleven / (1.5 · one + ten top-100)**": "eleven_over_allowed",
        "eleven / one": "eleven_over_one",
        "metrics s": lambda line: f"{line['metrics_s']} for {line['figures']} figures",
        "**metrics / top-100**": "metrics_over_ranking",
    },
    "tuning": {
        "data": "data",
        "inversions": "inversions",
        "configurations": "configurations",
        "grid s": "grid_s",
        "fit s": "fit_s",
        "one ξ s": "one_xi_s",
        "eleven ξ s": "eleven_xis_s",
        "**ξ add**": lambda line: f"{line['xis_add']:.1%}",
        "**refitting / grid**": "refitting_over_grid",
        "grid's best ndcg@100": "grid_best",
        "auto's, 16 inversions": "auto_best",
        "**auto / grid**": lambda line: f"{line['auto_over_grid']:.2%}",
    },
}


def table(lines: list[Line], columns: dict[str, str | Callable[[Line], object]]) -> str:
    rows = [list(columns), ["---"] * len(columns)]
    rows += [[str(line[cell] if isinstance(cell, str) else cell(line)) for cell in columns.values()] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def peers(line: Line) -> str:
    """One data set: a row per system, and ours beside it."""
    rows = []
    for system, figures in line.items():
        if isinstance(figures, dict):
            ours = line["relae-edlae" if system.endswith("edlae") else "relae-ease"]
            assert isinstance(ours, dict)
            fit, recommend = figures["fit_s"], figures["recommend_s"]
            exact = not system.startswith("implicit")
            rows.append(
                {
                    "system": system,
                    "fit s": fit,
                    "fit / relae": f"{fit / ours['fit_s']:.2f}" if exact else "(item-KNN)",
                    "top-100 s": recommend,
                    "top-100 / relae": f"{recommend / ours['recommend_s']:.2f}",
                }
            )
    heading = f"**{line['data']}**, {line['users']:,} users × {line['items']:,} items"
    return f"{heading}\n\n{table(rows, {name: name for name in rows[0]})}"


def main() -> None:
    lines = [json.loads(text) for text in sys.stdin if text.startswith("{")]
    for kind, heading in HEADINGS.items():
        chosen = [line for line in lines if line["benchmark"] == kind]
        if chosen:
            body = "\n\n".join(map(peers, chosen)) if kind == "peers" else table(chosen, COLUMNS[kind])
            print(f"## {heading}\n\n{body}\n")


if __name__ == "__main__":
    main()
