"""Declarations of functions are read from preprocessed headers."""

from __future__ import annotations

import pytest

from oomdoctor.virtual.headers import Parameter, prototypes, renamed

TEXT = """
typedef struct cudnnContext *cudnnHandle_t;
extern cudaError_t cudaThing(void **pointer, size_t bytes);
cudaError_t __attribute__ ((visibility ("default"))) cudaOther(const void *source,
                                                              int list[4]);
const char* ncclSays(ncclResult_t result);
ncclResult_t ncclBegin();
cudaError_t cudaCalls(void (*call)(void *argument), void *argument) __attribute__((noreturn));
static inline int helper(int cudaValue) { return cudaCount(cudaValue); }
"""


def by_name() -> dict[str, tuple[Parameter, ...]]:
    return {one.name: one.parameters for one in prototypes(TEXT)}


def test_functions_of_cuda_are_found_over_several_lines_and_with_attributes() -> None:
    assert sorted(by_name()) == ["cudaCalls", "cudaOther", "cudaThing", "ncclBegin", "ncclSays"]


def test_parameters_have_types_and_names() -> None:
    found = by_name()

    assert found["cudaThing"] == (Parameter("void **", "pointer"), Parameter("size_t", "bytes"))
    assert found["cudaOther"] == (Parameter("const void *", "source"), Parameter("int [4]", "list"))
    assert found["ncclBegin"] == ()


def test_a_pointer_to_a_function_keeps_its_commas() -> None:
    assert len(by_name()["cudaCalls"]) == 2


def test_a_declaration_can_be_written_again() -> None:
    texts = {one.name: one.text for one in prototypes(TEXT)}

    assert texts["cudaThing"] == "cudaError_t cudaThing(void **pointer, size_t bytes)"
    assert texts["ncclBegin"] == "ncclResult_t ncclBegin(void)"


@pytest.mark.parametrize(
    ("kind", "writes"),
    [
        ("int *", True),
        ("void **", True),
        ("const char **", True),
        ("int[4]", True),
        ("int", False),
        ("const int *", False),
        ("int const *", False),
        ("const float *const *", False),
        ("const float *const []", False),
    ],
)
def test_what_a_function_writes_to_is_not_constant(kind: str, writes: bool) -> None:
    assert Parameter(kind, "value").is_output is writes


def test_names_of_newer_versions_are_found() -> None:
    header = (
        "#define cuMemAlloc                          cuMemAlloc_v2\n"
        "#define cuMemcpyHtoD     __CUDA_API_PTDS(cuMemcpyHtoD_v2)\n"
        "#define CUDA_VERSION 13000\n"
    )

    assert renamed(header) == {"cuMemAlloc", "cuMemcpyHtoD"}
