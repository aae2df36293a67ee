"""Models that are brought to one card although something else was to place their parts."""

from __future__ import annotations

import pytest

from tests.unit.configs.test_fragments import facts_of

MAPPED = "AutoModelForCausalLM.from_pretrained('org/name', device_map='auto')"
PIPE = "pipe = DiffusionPipeline.from_pretrained('org/name')"


@pytest.mark.parametrize(
    "text",
    [
        f"model = {MAPPED}.cuda()\n",
        f"model = {MAPPED}.eval().to('cuda:0')\n",
        f"model = {MAPPED}\nmodel = model.to(device)\n",
        f"model = {MAPPED}\nmodel.eval()\nmodel.half().cuda()\n",
    ],
)
def test_a_model_with_a_device_map_that_is_moved_is_seen(text: str) -> None:
    assert facts_of(text)["code.moves_mapped_model"] is True


@pytest.mark.parametrize(
    "text",
    [
        f"model = {MAPPED}\n",
        f"model = {MAPPED}\ninputs = tokenizer('a').to('cuda')\n",
        f"model = {MAPPED}\nmodel.to(torch.float16)\n",
        "model = AutoModel.from_pretrained('org/name', device_map={'': 0}).cuda()\n",
        "model = AutoModel.from_pretrained('org/name', device_map='cpu').cuda()\n",
        "model = AutoModel.from_pretrained('org/name').cuda()\n",
    ],
)
def test_inputs_casts_and_models_without_a_spreading_map_may_move(text: str) -> None:
    assert "code.moves_mapped_model" not in facts_of(text)


@pytest.mark.parametrize(
    "text",
    [
        PIPE + ".to('cuda')\npipe.enable_model_cpu_offload()\n",
        PIPE + "\npipe.to(device)\npipe.enable_sequential_cpu_offload()\n",
    ],
)
def test_a_pipeline_that_is_moved_before_it_offloads_is_seen(text: str) -> None:
    assert facts_of(text)["code.moves_before_offload"] is True


@pytest.mark.parametrize(
    "text",
    [
        PIPE + "\npipe.enable_model_cpu_offload()\n",
        PIPE + "\npipe.enable_model_cpu_offload()\npipe.to('cuda')\n",
        PIPE + "\nother.to('cuda')\npipe.enable_model_cpu_offload()\n",
        PIPE + "\npipe.to(torch.bfloat16)\npipe.enable_model_cpu_offload()\n",
    ],
)
def test_offload_without_a_move_before_it_is_as_it_should_be(text: str) -> None:
    assert "code.moves_before_offload" not in facts_of(text)
