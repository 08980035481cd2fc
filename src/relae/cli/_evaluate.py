"""`relae evaluate`: fit to a part of the data and evaluate on the rest, or evaluate a saved model on other users."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from rich.markup import escape

from relae._common.files import lock_file, write_text
from relae._common.progress import Progress
from relae.algebra import check_xi
from relae.baselines import ContentKNN, Popularity, Random
from relae.cli._console import error_console, output_console
from relae.cli._model import open_with_dials, require
from relae.cli._parameters import choose_data, parse_parameters
from relae.cli._progress import progress_bar
from relae.cli._wording import COMMAND_LINE
from relae.data import Ids, Interactions
from relae.errors import DataError, UnknownItemsWarning
from relae.evaluation import DEFAULT_METRICS, Evaluation, Evaluations, Split, evaluate, hold_out_items
from relae.evaluation.metrics import check_ks, check_metrics
from relae.experiments import (
    TRENDING,
    Columns,
    DividedData,
    Division,
    Run,
    choose_model,
    describe_low_ratings,
    divide_data,
    list_yardsticks,
    make_yardsticks,
    read_data,
)
from relae.recommender import HistoryRecommender, encode
from relae.store import Saved
from relae.tuning import check_users

Result = Evaluation | Evaluations
_EXTENSIONS = (".json", ".csv", ".md")
_HIDE = 0.2
_KS = (20, 100)


@dataclass(frozen=True)
class EvaluateOptions:
    """The metrics to compute, and the output that they go to."""

    metrics: Sequence[str] | None
    ks: Sequence[int] | None
    xis: Sequence[float] | None
    as_json: bool
    out: Path | None

    def check(self, model: HistoryRecommender) -> None:
        """Raise if an option is wrong for the model, before anything is fitted."""
        check_metrics(self.metrics or DEFAULT_METRICS)
        if self.ks is not None:
            check_ks(self.ks, max(self.ks))
        if self.out is not None and self.out.suffix.lower() not in _EXTENSIONS:
            raise DataError(
                f"{self.out}: the extension {self.out.suffix!r} is none of {', '.join(_EXTENSIONS)}: name another file"
            )
        for xi in self.xis or ():
            require(model, "xi" in model.dials, "--xis")
            check_xi(xi)

    def lock_output(self) -> AbstractContextManager[None]:
        """Lock the output file, if there is one."""
        return nullcontext() if self.out is None else lock_file(self.out)

    def judge(self, model: HistoryRecommender, split: Split, progress: Progress) -> Result:
        """Evaluate a fitted model on a split."""
        keywords: dict[str, Any] = {} if self.xis is None else {"xis": self.xis}
        metrics, ks = self.metrics or DEFAULT_METRICS, self.cutoffs(split)
        result: Result = evaluate(model, split, metrics, ks, progress=progress, **keywords)
        return result

    def cutoffs(self, split: Split) -> Sequence[int]:
        """Return the cut-offs; by default those that the split has enough items for."""
        n = split.n_candidates
        return self.ks or [k for k in _KS if k <= n] or [n]


def evaluate_data(
    source: str | None,
    columns: Mapping[str, Any],
    parameters: Mapping[str, Any],
    options: EvaluateOptions,
    *,
    run: Path | None,
    division: Mapping[str, Any],
    hide: float | None,
    solver: str,
    dtype: str,
) -> None:
    """Fit to the training part, and evaluate on the test users."""
    if source is not None and (Path(source) / "model.json").exists():
        raise DataError(f"{source} is a model: say by whose data to judge it, with --on DATA")
    if hide is not None:
        raise DataError("--hide is for a saved model with --on DATA: use --split and --share here")
    tuned = None if run is None else Run.read(run)
    source, table_columns = choose_data(source, columns, tuned)
    model, fit_solver = choose_model(*parse_parameters(parameters, tuned), tuned, solver=solver, dtype=dtype)
    options.check(model)
    default_division = Division() if tuned is None else tuned.division
    console = error_console()
    with options.lock_output():
        with console.status(f"reading {source}"):
            divided = divide_data(source, table_columns, default_division._replace(**division))
        check_users(model, divided.test)
        with progress_bar(console) as progress:
            model.fit_with(divided.test.train, solver=fit_solver, progress=progress)
            result = options.judge(model, divided.test, progress)
            result = _add_baselines(model, result, options, divided, progress)
        words = [f"[bold]{escape(divided.title)}[/bold]: {escape(repr(divided.test))}"]
        lines = (COMMAND_LINE.text(text) for text in (divided.periods, divided.low_ratings))
        _show(result, options, words + [escape(line) for line in lines if line])


def _add_baselines(
    model: HistoryRecommender, result: Result, options: EvaluateOptions, divided: DividedData, progress: Progress
) -> Result:
    """Return the evaluation of a model beside the yardsticks where there are times.

    Items that nobody has are all equally popular: beside them are ContentKNN, Popularity and Random.
    """
    split = divided.test
    rivals: list[HistoryRecommender] = []
    if split.candidates is not None:
        rivals = [*([] if split.train.features is None else [ContentKNN()]), Popularity(), Random()]
    elif TRENDING in list_yardsticks(divided.valid, split):
        objective = f"ndcg@{min(max(options.cutoffs(split)), divided.n_items)}"
        rivals = [rival for _, rival in make_yardsticks(divided.valid, split, objective, progress=progress)]
    if not rivals:
        return result
    plain = replace(options, xis=None)
    rows = list(result) if isinstance(result, Evaluations) else [result]
    for rival in rivals:
        if type(rival) is not type(model):
            rows.append(cast(Evaluation, plain.judge(rival.fit(split.train, progress=progress), split, progress)))
    return Evaluations(rows)


def evaluate_model(
    path: str | None,
    source: str,
    columns: Mapping[str, Any],
    options: EvaluateOptions,
    *,
    hide: float | None,
    seed: int | None,
    refused: Mapping[str, Any],
) -> None:
    """Evaluate a saved model on all users of some data: a share of each user's items is hidden."""
    if path is None:
        raise DataError("there is no MODEL to judge with --on: name the folder of one")
    for name, value in refused.items():
        if value is not None:
            raise DataError(f"--{name} is for a model that is yet to be fitted: leave it out, or leave --on out")
    saved, model = open_with_dials(Path(path))
    if not model.folds_in:
        name = type(model).__name__
        raise DataError(
            f"{name} finds its users by their whole histories, of which --on hides a share: judge one that is fitted "
            f"to the rest, with `relae evaluate {source} --model {name.lower()} --split weak`"
        )
    options.check(model)
    console = error_console()
    with options.lock_output():
        with console.status(f"reading {source}"):
            table_columns = Columns(**columns).check_weighting()
            title, data = read_data(source, table_columns, judging=True)
        split = make_split(model, data, _HIDE if hide is None else hide, seed or 0)
        with progress_bar(console) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownItemsWarning)  # a note below says more
            result = options.judge(model, split, progress)
        notes = describe_unknown_items(model, split, data) + describe_known_users(saved, split)
        low = COMMAND_LINE.text(describe_low_ratings(source, table_columns, data))
        notes = [*([escape(low)] if low else []), *notes]
        _show(result, options, [f"[bold]{escape(path)}[/bold], judged by {escape(title)}", *notes])


def make_split(model: HistoryRecommender, data: Interactions, hide: float, seed: int) -> Split:
    """Return a split of all users of some data, with the item popularity of the model's training data.

    Its items are those of the model, followed by those that only the data has, which the model cannot recommend.
    """
    parts = hold_out_items(data, hide, rng=np.random.default_rng(seed))
    new = data.items.values[model.items_.positions(data.items.values) < 0]
    items = _concatenate_ids(model.items_, Ids(new))
    counts = np.concatenate([model.item_counts_, np.zeros(len(new), np.int64)])
    histories = encode(Interactions(parts.histories, items=data.items, times=parts.history_times), items)
    truth = encode(Interactions(parts.truth, items=data.items), items).matrix
    return Split(
        Interactions(_make_count_matrix(counts, model.n_users_), items=items),
        parts.users,
        histories.matrix,
        truth,
        f"{hide:.0%} of each user's items hidden",
        parts.left_out,
        seen=data.select_users(data.users.positions(parts.users.values)).seen_on(items),
        history_times=histories.times,
    )


def _concatenate_ids(known: Ids, new: Ids) -> Ids:
    """Return the ids of two axes, one after the other; as text if only one of them has integers."""
    if not len(new):
        return known
    listed = [*known.values.tolist(), *new.values.tolist()]
    return Ids(listed if known.kind == new.kind else [str(value) for value in listed])


def _make_count_matrix(counts: Any, n_users: int) -> sp.csr_array:
    """Return a matrix with the specified users per item; evaluation needs only these counts of the training data."""
    rows = np.concatenate([np.arange(count) for count in counts])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = sp.csc_array((np.ones(len(rows), np.float32), rows, indptr), shape=(n_users, len(counts)))
    return sp.csr_array(columns)


def describe_unknown_items(model: HistoryRecommender, split: Split, data: Interactions) -> list[str]:
    """Return a note on how many items the model does not know; empty if it knows all."""
    unknown = int(np.count_nonzero(model.items_.positions(data.items.values) < 0))
    if not unknown:
        return []
    n = len(model.items_)
    ignored, hidden = (int(np.count_nonzero(m.indices >= n)) for m in (split.histories, split.truth))
    return [
        f"[yellow]{unknown:,} of {data.n_items:,} items are unknown to the model: {ignored:,} interactions of the "
        f"histories are ignored, and {hidden:,} of those to find cannot be found[/yellow]"
    ]


def describe_known_users(saved: Saved, split: Split) -> list[str]:
    """Return a note on how many users the model was fitted to; empty if there are none."""
    if saved.histories is None:
        return []
    known = int(np.count_nonzero(saved.histories.users.positions(split.users.values) >= 0))
    if not known:
        return []
    return [
        f"[yellow]{known:,} of {len(split.users):,} users are among those whose histories the model has kept: they are "
        "not new to it, and what it has to find it may have seen[/yellow]"
    ]


# Results


def _show(result: Result, options: EvaluateOptions, words: Sequence[str]) -> None:
    """Show the result, or print it as JSON, and write it to a file."""
    out = options.out
    if out is not None:
        write_text(out, _to_text(result, out.suffix.lower()))
    if options.as_json:
        for note in words[1:]:
            error_console().print(note)
        print(result.to_json())
        return
    console = output_console()
    for line in words:
        console.print(line)
    console.print()
    console.print(result)
    if out is not None:
        console.print(f"\n[dim]saved: {escape(str(out))}[/dim]", soft_wrap=True)


def _to_text(result: Result, kind: str) -> str:
    if kind == ".json":
        return result.to_json() + "\n"
    return result.to_polars().write_csv() if kind == ".csv" else result.to_markdown()
