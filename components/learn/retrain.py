"""Retrain screen: the answers to learn from, doubtful labels, the learning curve, training."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.app.state import StoredResult, find_result, store_result
from components.learn.versions import reset_version_pair
from components.measure.summary import draw_counts, draw_next_step
from components.review.review_queue import QUEUE_PAGE
from components.widgets.charts import learning_curve_figure, loss_figure
from components.widgets.controls import (
    draw_button,
    draw_link,
    draw_table,
    show_problem,
    store_problem,
)
from components.widgets.wording import (
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_duration,
    format_language,
    format_percent,
    format_time,
)
from core.learning import training_set as training
from core.learning.data_quality import (
    LabelIssue,
    LabelIssues,
    LearningCurve,
    advise_on_cases,
    find_doubtful_labels,
    measure_learning_curve,
)
from core.learning.options import EMBEDDED_ENCODER, OPTION_BOUNDS, TrainingOptions, parse_options
from core.learning.retrain import (
    TRAINING_LEASE_SECONDS,
    cancel_training,
    estimate_training_seconds,
    measure_sample_seconds,
    start_training,
)
from core.learning.train import load_seed_claims
from core.llm.encoder import load_encoder
from core.review.adjudication import request_new_answers
from core.review.people import can_see_answers
from core.review.queue_ranking import enqueue_run
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import NotEnoughLabels, ReviewError
from core.schema.records import Label
from core.store import open_store
from core.store.ground_truth import TruthBasis
from core.store.review_queue import build_queue_rules
from core.store.sqlite import ChangeMark
from core.store.versions import TrainingJob

BASIS_WORDS: dict[TruthBasis, str] = {
    "settled": "settled by a lead",
    "gold": "came with a file",
    "agreed": "several people agree",
    "single": "one person's answer",
}
REASON_WORDS: dict[training.UnusableReason, str] = {
    "disputed": "disputed: people do not agree, and no lead has settled it",
    "waiting": "waiting for more answers, or for a lead, as the project wants",
    "unclear": "decided as unclear, which is neither label",
    "no_verdict": "without a verdict of the judge: there is no text to read",
    "no_run": "not checked here: check it, then answer on the run",
}
NUMBER_FIELDS: dict[str, list[str]] = {
    "pairs": [
        "Pairs for each text",
        "How often each text is paired with one of the same label and one of the other.",
    ],
    "steps": [
        "Steps at most",
        "Training stops after so many steps, even if pairs are left.",
    ],
    "epochs": ["Epochs", "How many times training goes through all pairs."],
    "seed": ["Seed", "The same seed, corrections and options give the same pairs."],
}
ENDED_WORDS: dict[str, str] = {
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "running": "under way",
}
DOUBTS_HINT = (
    "A quick model learns from all other cases and says where it would never have given a person's "
    "label (cleanlab's confident learning). It is a hint where to look again: some of these labels "
    "are right, and the model is wrong."
)
ORIGINS_HINT = (
    "Each run counts once, with what counts as true for its case, under everybody who gave that "
    "answer. Held-out cases are among them."
)
GIVE_BACK_HELP = (
    "Gives the case back to the review queue, first to who answered it. What they said stands "
    "until they answer anew."
)
TRAINING_ENDED_UNEXPECTEDLY = (
    "The process of the last training ended unexpectedly; the active version stays as it is. Start "
    "it again."
)

OTHER_PROJECTS = "people of other projects"
MIN_LABEL_SHARE = 0.2
TRAINING_PROBLEM = "retrain.problem"
CURVE_RESULT = "learning curve"
DOUBTS_RESULT = "label doubts"
MAX_SHOWN_DOUBTS = 10
ProgressReporter = Callable[[int, int], None]
CurveComputation = Callable[[Sequence[training.AttributedRow], ProgressReporter], Any]
POLL_SECONDS = 1.0
CONFIRM_AFTER_SECONDS = 180.0  # seconds of work; less may be cancelled without asking
PAPER_ENCODER = "sentence-transformers/paraphrase-mpnet-base-v2"
OTHER_ENCODER = "another"
ENCODERS = {
    EMBEDDED_ENCODER: "MiniLM, which is here (quick, English)",
    PAPER_ENCODER: "paraphrase-mpnet-base-v2, as in the paper (420 MB, several times slower)",
    OTHER_ENCODER: "another one",
}
OPTIONS_KEY = "retrain.options"


def load_material() -> training.CorrectionOverview:
    """Return the current numbers of labels and cases."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
    return _load_overview(str(state.home_folder()), mark)


@st.cache_resource(max_entries=1, show_spinner="Counting the corrections")
def _load_overview(home: str, mark: ChangeMark) -> training.CorrectionOverview:
    with open_store(Path(home)) as store:
        return training.summarize_corrections(store)


def draw_next_training_step() -> None:
    """Draw what to do next on the way from answers to a version in use."""
    data = load_material()
    with state.open_store() as store:
        trainings = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)
        versions, active = store.versions.all(), store.versions.active()
    if data.missing:
        lacking = " and ".join(f"{count} {label}" for label, count in data.missing.items())
        draw_next_step(f"answer cases: {lacking} more are needed.", QUEUE_PAGE, "Review")
    elif any(training.status == "running" for training in trainings):
        draw_next_step("a version is being trained: wait for it below.")
    elif not versions:
        draw_next_step("no version yet: train one below.")
    elif versions[0].id != active:
        draw_next_step("compare the newest version with the active one below, and activate it.")
    elif data.fresh:
        words = f"{format_count(data.fresh, 'answer')} came since the last training: train again."
        draw_next_step(words)
    else:
        draw_next_step("the newest version is active: answer more cases.", QUEUE_PAGE, "Review")


def draw_material() -> None:
    """Draw the number of corrections by label, and what is missing."""
    st.subheader("What there is to learn from", anchor=False)
    data = load_material()
    columns = st.columns(4)
    for column, (label, count) in zip(columns, data.labels.items(), strict=False):
        need = data.missing.get(label, 0)
        column.metric(
            f"Corrected as {LABEL_WORDS[label].lower()}",  # type: ignore[index]
            count,
            f"{need} more needed" if need else "enough",
            delta_color="off",
            delta_arrow="off",
        )
    columns[2].metric(
        "Held out",
        data.held,
        help="A quarter of the cases is never trained on: on them versions are compared.",
    )
    columns[3].metric(
        "Not usable",
        sum(data.unusable.values()),
        help="The reasons are under “Where they come from”.",
    )
    total = sum(data.labels.values())
    draw_counts(
        f"Here count {format_count(total, 'run')} of all projects, each once with the answer that "
        f"decides it; {sum(data.unusable.values()):,} answers are not usable."
    )
    if total:
        st.caption(_describe_sides(data, total))
    if advice_text := _advise(data):
        st.info(advice_text, icon=":material/info:")
    if any(data.labels.values()) or data.unusable:
        with st.expander("Where they come from", icon=":material/group:"):
            _draw_origins(data)


def _describe_sides(data: training.CorrectionOverview, total: int) -> str:
    """Return what each of the corrections is used for; the numbers add up to `total`."""
    parts = [f"{data.trained} are trained on", f"{data.held} held out"]
    if data.calibration:
        parts.append(f"{data.calibration} used for calibration")
    if data.fresh:
        parts.append(f"{data.fresh} new: a quarter of them will be held out")
    return f"Of these {format_count(total, 'correction')}, {', '.join(parts)}."


def _advise(data: training.CorrectionOverview) -> str:
    """Return which answers are still needed, or would teach most; "" if none stand out."""
    if data.missing:
        return (
            f"{advise_on_cases(data.missing, None)} It takes "
            f"{training.MIN_CORRECTIONS_PER_LABEL} of each label: "
            "open runs under History and agree or disagree with them."
        )
    rare = min(training.TRAINED_LABELS, key=lambda label: data.labels[label])
    share = data.labels[rare] / (sum(data.labels.values()) or 1)
    if share >= MIN_LABEL_SHARE:
        return ""
    return (
        f"Only {share:.0%} are {rare}: more {rare} cases would teach more than others. "
        f"Filter History by {LABEL_WORDS[rare].lower()} to find some."
    )


def _draw_origins(data: training.CorrectionOverview) -> None:
    by_language = {format_language(n): count for n, count in data.counts.by_language.items()}
    by_basis = {BASIS_WORDS[name]: count for name, count in data.counts.by_basis.items()}
    tables: tuple[tuple[str, str, Mapping[str, Mapping[Label, int]]], ...] = (
        ("Person", "people", _name_people(data.counts.by_person)),
        ("Language", "languages", by_language),
        ("Source", "origins", by_basis),
    )
    for column, (name, key, counts) in zip(st.columns([6, 6, 7]), tables, strict=True):
        rows: list[dict[str, Any]] = [
            {name: who}
            | {LABEL_WORDS[label]: by_label.get(label, 0) for label in training.TRAINED_LABELS}
            for who, by_label in sorted(counts.items(), key=lambda pair: -sum(pair[1].values()))
        ]
        if rows:
            with column:
                draw_table(rows, f"retrain.{key}", height="content" if len(rows) < 12 else 420)
    st.caption(ORIGINS_HINT)
    for reason, count in data.unusable.items():
        st.markdown(f"- Not usable: {format_count(count, 'case')} {REASON_WORDS[reason]}.")


def _name_people(
    by_person: Mapping[tuple[str, str], Mapping[Label, int]],
) -> dict[str, Counter[Label]]:
    """Return the counts by name; people of projects not visible here are counted together."""
    with state.open_store() as store:
        projects = {project_id for project_id, _ in by_person}
        visible = {each for each in projects if state.can_see_project(store, each)}
    counts: dict[str, Counter[Label]] = {}
    for (project_id, name), by_label in by_person.items():
        shown = name if project_id in visible else OTHER_PROJECTS
        counts.setdefault(shown, Counter()).update(by_label)
    return counts


def draw_gain(mark: ChangeMark) -> None:
    """Draw the button and the last learning curve; `mark` identifies the current answers."""

    def curve(
        material: Sequence[training.AttributedRow], progress: ProgressReporter
    ) -> LearningCurve:
        rows = [case.row for case in material]
        return measure_learning_curve(
            rows, load_encoder(ENCODER_DIR), state.home_folder(), progress
        )

    with st.expander("What more cases would add", icon=":material/show_chart:"):
        words = ("Compute it", "Compute again")
        last = _draw_button(CURVE_RESULT, words, "retrain.curve.count", curve, mark)
        if last is None:
            return
        result: LearningCurve = last.value
        st.markdown(f"**{advise_on_cases(load_material().missing, result)}**")
        st.plotly_chart(learning_curve_figure(result), key="retrain.curve.figure", width="stretch")
        st.caption(
            f"Counted on {format_time(last.at)} from {result.cases} cases: a quick stand-in for "
            f"the "
            "classifier learns from more and more of them and is asked about others, five times "
            "over. Bars are 95% intervals over resampled cases. Balanced accuracy is the mean "
            "share of each label that is recognised; AUROC is how often a hallucinated case "
            "gets the higher probability. Both are 0.5 for a classifier that always says the "
            "same."
        )


def _draw_button(
    name: str, words: tuple[str, str], key: str, count: CurveComputation, mark: ChangeMark
) -> StoredResult | None:
    last = find_result(name)
    first_label, repeat_label = words
    is_old = last is not None and last.mark != mark
    label = f"{repeat_label}: answers came since" if is_old else first_label
    if (last is None or is_old) and st.button(label, key=key, icon=":material/calculate:"):
        _compute_result(name, count, mark)
        st.rerun()
    if problem := st.session_state.pop(f"retrain.problem.{name}", ""):
        st.info(escape_markdown(problem))
    return last


def _compute_result(name: str, count: CurveComputation, mark: ChangeMark) -> None:
    """Compute and keep the result; embeddings are kept even if the person leaves meanwhile."""
    bar = st.progress(0.0, text="Reading the answers")

    def progress(done: int, every: int) -> None:
        bar.progress(done / every, f"Reading verdict {done:,} of {every:,}")

    try:
        with state.open_store() as store:
            material = training.attribute_rows(store)
        store_result(name, count(material, progress), mark, time.time())
    except NotEnoughLabels as error:
        st.session_state[f"retrain.problem.{name}"] = str(error)


def draw_doubts(mark: ChangeMark) -> None:
    """Draw the button and the doubts found last; `mark` identifies the current answers."""
    with st.expander("Labels that look wrong", icon=":material/rule:", key="retrain.doubts"):
        st.caption(DOUBTS_HINT)
        last = _draw_button(
            DOUBTS_RESULT,
            ("Look for them", "Look again"),
            "retrain.doubts.look",
            _find_doubts,
            mark,
        )
        if last is not None:
            _draw_found_doubts(last.value, last.at)


def _find_doubts(
    material: Sequence[training.AttributedRow], progress: ProgressReporter
) -> LabelIssues:
    return find_doubtful_labels(material, load_encoder(ENCODER_DIR), state.home_folder(), progress)


def _draw_found_doubts(found: LabelIssues, at: float) -> None:
    with state.open_store() as store:
        person = state.get_person(store)
        visible = [
            each
            for each in found.found
            if state.can_see_project(store, each.taught.project_id)
            and can_see_answers(store, each.taught.project_id, person, is_settling=True)
        ]
    scope = f"{format_count(found.looked_at, 'answer')} looked at on {format_time(at)}"
    if found.looked_at < found.all:
        scope += f", the newest of {found.all:,}"
    if not visible:
        st.success(f"No label looks wrong; {scope}.", icon=":material/check:")
        return
    more = (
        f", the {MAX_SHOWN_DOUBTS} most doubtful shown" if len(visible) > MAX_SHOWN_DOUBTS else ""
    )
    st.markdown(f"**{format_count(len(visible), 'label')}** look wrong{more}; {scope}.")
    for doubt in visible[:MAX_SHOWN_DOUBTS]:
        _draw_doubt(doubt, at)


def _draw_doubt(doubt: LabelIssue, found_at: float) -> None:
    case = doubt.taught
    with state.open_store() as store:
        handled = store.queue_events.of_case(case.case_id)
    is_open = any(entry.did in ("opened", "reopened") and entry.at >= found_at for entry in handled)
    with st.container(border=True):
        left, right = st.columns([5, 3], vertical_alignment="center")
        left.markdown(
            f"“{escape_markdown(clip_text(case.row.claim, 200))}”  \n"
            f"{escape_markdown(' and '.join(case.people))} said "
            f"**{LABEL_WORDS[case.row.label].lower()}**; "
            f"the model gives that {format_percent(doubt.p_label)} and thinks **{doubt.thinks}**"
        )
        with right.container(horizontal=True, horizontal_alignment="right"):
            draw_link("pages/check/run.py", "Open the run", "open_in_new", run=case.row.run_id)
            if is_open:
                st.badge("back in the queue", icon=":material/check:", color="green")
            elif has_role("lead", project_id=case.project_id):
                key = f"retrain.doubts.ask.{case.case_id}"
                draw_button("Ask again", key, _ask_again, doubt, icon="undo", help=GIVE_BACK_HELP)


def _ask_again(doubt: LabelIssue) -> None:
    case, now = doubt.taught, time.time()
    reason = f"its label looks wrong: others like it are {doubt.thinks}"
    with store_problem(f"retrain.problem.{DOUBTS_RESULT}"):
        with state.open_store() as store:
            project = store.projects.get(case.project_id)
            is_queued = store.queue.get(case.case_id) or enqueue_run(store, case.row.run_id, now)
            if project is None or not is_queued:
                raise ReviewError("This case cannot be asked about: it is not there any more.")
            with store.writing():
                by = state.require_role(store, project.id, "lead", "ask people again")
                people = request_new_answers(
                    store, case.case_id, by, build_queue_rules(project), now, why=reason
                )
        recipient = (
            f"with {format_count(people, 'person')} who answered it"
            if people
            else "for whoever is next"
        )
        st.toast(f"Back in the review queue, {recipient}.", icon=":material/check:")


@st.fragment(run_every=POLL_SECONDS)
def draw_progress() -> None:
    """Draw the progress every second until the training ends; then redraw the page once."""
    with state.open_store() as store:
        trainings = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)
    running = next((t for t in trainings if t.status == "running"), None)
    if running is None:
        reset_version_pair()
        st.rerun()
        return
    elapsed = time.time() - running.started_at
    progress = running.progress
    st.progress(compute_progress(progress), text=format_progress(progress, elapsed))
    if not has_role("lead", "cancel a training", for_all=True):
        pass
    elif elapsed < CONFIRM_AFTER_SECONDS:
        draw_button("Cancel", "retrain.cancel", _cancel, running.id, icon="close")
    else:
        with st.popover("Cancel", icon=":material/close:"):
            st.markdown(
                f"{format_duration(elapsed)} of work would be lost; the active version stays."
            )
            draw_button("Cancel the training", "retrain.cancel", _cancel, running.id, icon="close")
    losses = progress.get("losses") or []
    if len(losses) > 1:
        figure = loss_figure(losses, int(progress.get("steps") or 0))
        st.plotly_chart(figure, key="retrain.live", width="stretch")


def compute_progress(progress: dict[str, Any]) -> float:
    """Return the progress in [0, 1]: by stages, and by steps within one."""
    number, stages = progress.get("stage_number") or 1, progress.get("stages") or 1
    step, steps = progress.get("step") or 0, progress.get("steps") or 0
    within = min(1.0, step / steps) if steps else 0.0
    if "stages" not in progress:
        return float(within)
    return float(min(1.0, (number - 1 + within) / stages))


def format_progress(progress: dict[str, Any], elapsed: float) -> str:
    """Return a line on the stage, its steps and loss, and the time left."""
    stage = escape_markdown(str(progress.get("stage", "Starting the training process")))
    if progress.get("stages"):
        stage = f"{progress.get('stage_number')} of {progress['stages']}: {stage}"
    parts = [stage]
    if progress.get("steps"):
        parts[0] += f", step {progress.get('step', 0)} of {progress['steps']}"
    if progress.get("loss") is not None:
        parts.append(f"loss {progress['loss']:.3f}")
    parts.append(f"{format_duration(elapsed)} so far")
    if progress.get("eta") is not None:
        parts.append(f"about {format_duration(progress['eta'])} left in this stage")
    return " · ".join(parts)


def _cancel(training_id: str) -> None:
    with store_problem(TRAINING_PROBLEM), state.open_store() as store:
        cancel_training(store, training_id, state.get_person(store))


def draw_training() -> None:
    """Draw the running training, or the options and the button to start one."""
    st.subheader("Training", anchor=False)
    with state.open_store() as store:
        trainings = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)
        tried = {item.version_id for item in store.versions.activations()}
    if any(training.status == "running" for training in trainings):
        draw_progress()
        return
    if trainings:
        _draw_ended(trainings[0], tried)
    if not has_role("lead", "retrain", for_all=True):
        if len(trainings) > 1:
            _draw_past(trainings)
        return
    options = _draw_options()
    draw_button(
        "Retrain",
        "retrain.start",
        _start,
        options,
        icon="model_training",
        type="primary",
        disabled=bool(load_material().missing),
    )
    st.caption(
        f"{_describe_duration(options, trainings)} You may leave this page meanwhile; checks go on."
    )
    show_problem(TRAINING_PROBLEM)
    if len(trainings) > 1:
        _draw_past(trainings)


def _describe_duration(options: dict[str, Any], trainings: Sequence[TrainingJob]) -> str:
    """Return how long a training with these options is expected to take on this computer."""
    ended = [each for each in trainings if each.status == "finished" and each.finished_at]
    alike = [each for each in ended if parse_options(each.options).encoder == options["encoder"]]
    if not alike and options["encoder"] != EMBEDDED_ENCODER:
        return "How long it takes with this encoder is known after its first training here."
    data, sample = load_material(), 0.0 if alike else _measure_sample()
    last = alike[0] if alike else None
    texts = sum(data.labels.values()) - data.held + len(load_seed_claims())
    seconds = estimate_training_seconds(TrainingOptions(**options), texts, sample, last)
    basis = "by a short measurement"
    if last is not None:
        took = format_duration((last.finished_at or 0.0) - last.started_at)
        basis = f"as the last one took {took}"
    return f"It takes about {format_duration(seconds)} on this computer, {basis}."


@st.cache_resource(show_spinner="Measuring how fast this computer is")
def _measure_sample() -> float:
    return measure_sample_seconds(load_encoder(ENCODER_DIR))


def _draw_options() -> dict[str, Any]:
    """Draw the training options and return the chosen ones by name."""
    defaults = TrainingOptions().as_dict()
    with st.expander("Options", icon=":material/tune:"):
        encoder = st.selectbox(
            "Sentence encoder",
            list(ENCODERS),
            format_func=ENCODERS.__getitem__,
            key=f"{OPTIONS_KEY}.encoder",
            persist_state="session",
            help="What turns a verdict's text into numbers; it is tuned on pairs of texts.",
        )
        if encoder == OTHER_ENCODER:
            encoder = st.text_input(
                "Its folder on the server, or its name on the Hugging Face Hub",
                key=f"{OPTIONS_KEY}.name",
                persist_state="session",
                placeholder="sentence-transformers/all-MiniLM-L12-v2",
            )
        chosen: dict[str, Any] = {"encoder": str(encoder or "")}
        for column, (name, (words, meaning)) in zip(
            st.columns(4), NUMBER_FIELDS.items(), strict=True
        ):
            least, most = (int(bound) for bound in OPTION_BOUNDS[name])
            chosen[name] = column.number_input(
                words,
                least,
                most,
                int(defaults[name]),
                key=f"{OPTIONS_KEY}.{name}",
                persist_state="session",
                help=meaning,
            )
    return chosen


def _start(options: dict[str, Any]) -> None:
    with store_problem(TRAINING_PROBLEM), state.open_store() as store:
        start_training(store, state.home_folder(), state.get_person(store), parse_options(options))


def _draw_ended(training: TrainingJob, tried: set[str]) -> None:
    at = format_time(training.finished_at or training.started_at)
    if training.status == "failed":
        st.error(
            f"The last training failed: {escape_markdown(training.message)}",
            icon=":material/error:",
        )
    elif training.status == "cancelled":
        st.info(f"{at}: {escape_markdown(training.message) or 'The last training was cancelled.'}")
    elif training.status == "interrupted":
        st.warning(TRAINING_ENDED_UNEXPECTEDLY)
    elif training.version_id and training.version_id not in tried:
        st.success(
            f"{at}: {escape_markdown(training.version_id)} is trained. Compare it below; "
            "nothing changes until you activate it.",
            icon=":material/check:",
        )


def _draw_past(trainings: list[TrainingJob]) -> None:
    rows = [
        {
            "Started": format_time(training.started_at),
            "By": training.author,
            "Outcome": ENDED_WORDS[training.status],
            "Took": format_duration(
                (training.finished_at or training.started_at) - training.started_at
            ),
            "Version": training.version_id or "",
            "Message": training.message,
        }
        for training in trainings
    ]
    with st.expander("Earlier trainings", icon=":material/history:"):
        draw_table(rows, "retrain.past", height="content" if len(rows) < 12 else 420)
