"""Contrastive fine-tuning of MiniLM (SetFit) on pairs of verdict texts, and its export to ONNX.

setfit's own `save_pretrained` writes a pickled head: it is not used. Source: CEDA 3.4; SetFit's
default recipe makes far too many pairs, so steps are capped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.models.export import export_encoder, wheel_folder
from core.records import Label

Report = Callable[..., None]


@dataclass(frozen=True)
class Recipe:
    """Every training choice. `iterations` is SetFit's pairs per text; `most_steps` caps them."""

    iterations: int = 4
    most_steps: int = 40
    batch_size: int = 16
    learning_rate: float = 2e-5
    regularisation: float = 1.0
    seed: int = 7


def fine_tuned(
    rows: Sequence[tuple[str, Label]], recipe: Recipe, out: Path, name: str, report: Report
) -> None:
    """Contrastive fine-tuning of MiniLM on pairs of texts, then export."""
    report("Loading SetFit")
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression

    source = wheel_folder()
    body = SentenceTransformer(str(source), device="cpu")
    model = SetFitModel(model_body=body, model_head=LogisticRegression())
    scratch = out.parent / "scratch"
    _train_body(model, rows, _arguments(recipe, len(rows), scratch), report)
    report("Exporting the encoder")
    shutil.rmtree(scratch, ignore_errors=True)
    tuned = body[0].auto_model.eval()
    tuned.config._attn_implementation = "eager"
    export_encoder(tuned, source / "tokenizer.json", out, name=name)


def _arguments(recipe: Recipe, rows: int, scratch: Path) -> Any:
    """The recipe as SetFit's own arguments, for that many texts."""
    from setfit import TrainingArguments

    pairs = 2 * recipe.iterations * rows
    return TrainingArguments(
        output_dir=str(scratch),
        batch_size=recipe.batch_size,
        num_iterations=recipe.iterations,
        max_steps=min(recipe.most_steps, -(-pairs // recipe.batch_size)),
        body_learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        logging_steps=5,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
    )


def _train_body(
    model: Any, rows: Sequence[tuple[str, Label]], arguments: Any, report: Report
) -> None:
    """Fine-tune the model's body in place and report each step."""
    from datasets import Dataset
    from setfit import Trainer
    from transformers import TrainerCallback

    class Progress(TrainerCallback):  # type: ignore[misc]
        """Passes each step on."""

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            losses = [e["embedding_loss"] for e in state.log_history if "embedding_loss" in e]
            report(
                "Fine-tuning",
                int(state.global_step),
                int(state.max_steps),
                float(losses[-1]) if losses else None,
            )

    texts = {"text": [t for t, _ in rows], "label": [int(y == "hallucinated") for _, y in rows]}
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(texts),
        callbacks=[Progress()],
    )
    trainer.train_embeddings(texts["text"], texts["label"], args=arguments)
