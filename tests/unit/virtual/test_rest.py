"""What becomes of functions that nobody wrote by hand."""

from __future__ import annotations

import pytest

from oomdoctor.virtual.headers import prototypes
from oomdoctor.virtual.rest import LIBRARIES, Library, includes, plain_source, typed_source


def library(header: str) -> Library:
    return next(one for one in LIBRARIES if header in one.headers)


def plain(header: str, text: str, exported: tuple[str, ...] = ()) -> list[str]:
    return plain_source(library(header), list(prototypes(text)), exported).splitlines()


def typed(header: str, text: str) -> str:
    return typed_source(library(header), list(prototypes(text)))


def test_a_driver_function_that_writes_something_fails_and_is_reported() -> None:
    assert plain("cuda.h", "CUresult cuAsks(int *answer, int question);") == [
        "IS_REFUSED(cuAsks, 801)"
    ]


def test_a_driver_function_that_writes_nothing_is_passed_over_and_reported() -> None:
    assert plain("cuda.h", "CUresult cuTells(const int *value, int more);") == [
        "IS_IGNORED(cuTells)"
    ]


def test_a_function_that_no_header_declares_fails() -> None:
    assert plain("cuda_runtime_api.h", "", ("cudaSecret", "notOurs")) == [
        "IS_REFUSED(cudaSecret, 801)"
    ]


def test_a_product_does_nothing() -> None:
    text = "cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, const float *a, float *c);"

    assert plain("cublas_v2.h", text) == ["DOES_NOTHING(cublasSgemm_v2)"]
    assert typed("cublas_v2.h", text) == ""


def test_a_result_on_the_host_is_zero() -> None:
    text = "cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, float *result);"

    body = typed("cublas_v2.h", text)

    assert "vc_card_of(result) < 0" in body
    assert "memset(result, 0, sizeof(float))" in body


def test_a_workspace_is_assumed_to_need_nothing() -> None:
    text = "cusolverStatus_t cusolverDnX_bufferSize(cusolverDnHandle_t handle, int n, int *lwork);"

    body = typed("cusolverDn.h", text)

    assert 'vc_report(VC_ASSUMED, "cusolverDnX_bufferSize: 0 bytes");' in body
    assert "*lwork = 0;" in body
    assert plain("cusolverDn.h", text) == []


def test_a_handle_is_a_fresh_one() -> None:
    body = typed("cufftXt.h", "cufftResult cufftCreate(cufftHandle *handle);")

    assert "*handle = (cufftHandle)(uintptr_t)vc_fresh_handle();" in body


@pytest.mark.parametrize(
    "text",
    [
        "cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, size_t *sizeInBytes);",
        "cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, size_t *bytes);",
    ],
)
def test_a_size_that_decides_about_memory_is_not_assumed(text: str) -> None:
    assert typed("cudnn.h", text) == ""
    assert plain("cudnn.h", text)[0].startswith("IS_REFUSED")


def test_what_cudnn_says_without_a_handle_is_left_to_it() -> None:
    text = "cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor);"

    assert plain("cudnn.h", text) == []
    assert typed("cudnn.h", text) == ""


def test_a_text_is_empty() -> None:
    assert 'return "";' in typed("nccl.h", "const char* ncclSays(ncclResult_t result);")


def test_all_headers_are_included() -> None:
    text = includes(LIBRARIES)

    assert "#include <cuda.h>" in text
    assert "#include <cublasLt.h>" in text
