"""Pasted stretches of scripts: no function head, prose in between, ellipses, bodies left away."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config


def facts_of(text: str) -> dict[str, object]:
    facts = [fact for reading in read_config(text, name="snippet") for fact in reading.facts]
    return {fact.key: fact.value for fact in reversed(facts)}


UNGUARDED = [
    "# a.py\n    model.eval()\n    t = 1\n    for x, y in loader:\n        o = model(x)\n",
    "    for i, (x, y) in enumerate(val_loader):\n        x = x.cuda()\n        o = net(x)\n",
    "def validate(...):\n    for x in data:\n        out = self.model(x)\n        ...\n",
    "def main():\n    for x in test_dl:\n        the usual things, then\n        out = model(x)\n",
    "model.eval()\nfor x in tqdm(loader):\n    out = model(x)\n    # more\n    …\n",
]  # fmt: skip
GUARDED = [
    "model.eval()\nwith torch.no_grad():\n    for x in val_loader:\n        out = model(x)\n",
    "torch.set_grad_enabled(False)\nmodel.eval()\nfor x in loader:\n    out = model(x)\n",
    "@torch.inference_mode()\ndef validate(m, ...):\n    for x in data:\n        o = model(x)\n",
]
TRAINING = [
    "for x in loader:\n    out = model(x)\n    out.backward()\n",
    "model.eval()\nmodel.train()\nfor x in loader:\n    out = model(x)\n",
    "for x in val_loader:\n    loss = model(x)\n    optimizer.step()\n",
    "for x in test_loader:\n    print(x)\n",
]


@pytest.mark.parametrize("text", UNGUARDED)
def test_an_evaluation_loop_without_no_grad_is_found_in_a_fragment(text: str) -> None:
    facts = facts_of(text)
    assert (facts.get("code.eval_without_no_grad"), facts.get("eval.no_grad")) == (True, False)


@pytest.mark.parametrize("text", GUARDED)
def test_a_guarded_evaluation_loop_in_a_fragment_is_not_blamed(text: str) -> None:
    facts = facts_of(text)
    assert (facts.get("code.eval_without_no_grad"), facts.get("eval.no_grad")) == (False, True)


@pytest.mark.parametrize("text", TRAINING)
def test_a_loop_that_trains_or_runs_no_model_is_no_evaluation(text: str) -> None:
    assert "code.eval_without_no_grad" not in facts_of(text)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("    for x in dl:\n        and so on\n        total_loss += loss", "code.loss_accumulated",
         True),
        ("        outputs.append(model(x))\n    else:\n        pass", "code.appends_outputs", True),
        ("else:\n    state = torch.load(ckpt)\n", "code.load_on_device", True),
        ("else:\n    state = torch.load(ckpt, map_location='cpu')\n", "code.load_on_device", None),
        ("if cuda:\n    net = nn.DataParallel(net).cuda()\n", "dist.kind", "dp"),
        ("for x in dl:\n", "code.loss_accumulated", None),
    ],
)  # fmt: skip
def test_habits_are_found_in_fragments(text: str, key: str, value: object) -> None:
    assert facts_of(text).get(key) == value


def test_a_quote_keeps_the_line_and_column_of_the_pasted_text() -> None:
    text = "# utils\n    for x in dl:\n        prose in between\n        total_loss += loss\n"
    (reading,) = read_config(text, name="snippet")
    (quote,) = next(fact for fact in reading.facts if fact.key == "code.loss_accumulated").quotes
    assert (quote.line, quote.column, quote.text) == (4, 9, "total_loss += loss")


def test_a_text_of_prose_alone_gives_no_code() -> None:
    text = (
        "return of the model for every loader: nothing is known\nwe ran it twice (on two cards)\n"
    )
    assert {"job.text"} == set(facts_of(text))
