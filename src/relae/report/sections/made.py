"""Parameters, division, versions and commands of the run."""

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._facts import FitFacts
from relae.report._html import Markup, facts, join, tag
from relae.report._report import Report
from relae.report.sections.headline import describe_constraint


def draw_made(report: Report) -> Markup:
    """Return parameters, division, versions and commands, and what to keep in mind."""
    run, division = report.run, report.run.division
    low_ratings = str(run.record["low_ratings"]).removeprefix("low ratings: ")
    rows: list[tuple[str, object]] = [
        ("Model", tag("code", run.record["model"])),
        ("Objective", words.metric(report.objective) + describe_constraint(report)),
        *(_describe_fit(report) if report.dials else _describe_parameters(report)),
        (
            "Division",
            f"{run.record['protocol']} (split {division.split}, share {division.share:g}, seed {division.seed})",
        ),
        *([("Time", run.record["periods"].removeprefix("judged by time: "))] if run.record.get("periods") else []),
        *([("Low ratings", low_ratings)] if low_ratings else []),
        ("Versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())),
    ]
    notes = (
        "The choice was made by validation data; the tables of accuracy are of test data, which took no part in it. "
        "Figures of validation data are a little too good, as the best of many always is.",
        "Intervals and p-values are of users drawn at random from this data, not of another time or place. "
        "p-values come from a paired permutation test and are not corrected for their number.",
        "What a user has not had may be unknown to them rather than unwanted: offline figures rank models, and do "
        "not foretell what people will do.",
    )
    return join(
        facts(rows),
        tag("p", "These commands make it again:"),
        tag("pre", tag("code", f"{run.command}\n{report.command}")),
        tag("ul", *(tag("li", note) for note in notes), class_="plain"),
    )


def _describe_fit(report: Report) -> list[tuple[str, object]]:
    fit = report.fit
    assert fit is not None
    exact = f"{fit.residual:.0e}".replace("e-0", "e-")
    is_extra = any(report.point[each.name] != each.neutral for each in report.extras)
    shown = [each for each in report.space if is_extra or each.neutral is None]
    return [
        (
            ", ".join(each.symbol for each in shown),
            ", ".join(map(_exactly, (report.point[each.name] for each in shown))),
        ),
        ("Last fit", f"{in_count(fit.users, 'user')} × {in_count(fit.items, 'item')}: train and validation data"),
        ("Solver", f"{fit.solver}, {fit.dtype}"),
        ("Residual", _residual(fit, exact)),
    ]


def _exactly(value: float | None) -> str:
    return "none" if value is None else repr(float(value))


def _describe_parameters(report: Report) -> list[tuple[str, object]]:
    listed = ", ".join(f"{name} {words.parameter(value)}" for name, value in report.run.model.get_params().items())
    train = report.divided.test.train
    size = f"{in_count(train.n_users, 'user')} × {in_count(train.n_items, 'item')}"
    return [("Parameters", listed or "none"), ("Last fit", f"{size}: train and validation data")]


def _residual(fit: FitFacts, exact: str) -> str:
    if fit.solver == "local":
        return f"each item by its nearest only, solved to {exact}: an approximation"
    return f"the inverse is exact to {exact}: ‖(G+Λ)Pv − v‖/‖v‖ of random probes v"
