/* cuDNN's recurrent layers: the size of their weights, and where each matrix lies among them.

   The weights lie without gaps, the matrices of all layers first, then the biases. What a layer keeps
   for its backward pass and works with has no documented size: it is taken from the shapes (gates,
   states and outputs of every step, masks of the dropout between layers) and reported as assumed. */
#include "virtual.h"

#include <cudnn.h>

#define REAL(function) ((__typeof__(function) *)vc_real_cudnn(#function))

struct network {
    int gates, biases, directions, layers;
    size_t input, hidden, output; /* output: the projection, where there is one */
    size_t element;
    cudnnDataType_t type;
};

static size_t bytes_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE                                  ? 8
           : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
                                                                      : 4;
}

static int describe(cudnnRNNDescriptor_t descriptor, struct network *is)
{
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t cell;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnRNNInputMode_t input_mode;
    cudnnDataType_t precision;
    cudnnMathType_t math;
    cudnnDropoutDescriptor_t dropout;
    int32_t input, hidden, projection, layers;
    uint32_t flags;
    if (REAL(cudnnGetRNNDescriptor_v8)(descriptor, &algorithm, &cell, &bias, &direction,
                                       &input_mode, &is->type, &precision, &math, &input, &hidden,
                                       &projection, &layers, &dropout, &flags))
        return 0;
    is->gates = cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1;
    is->biases = bias == CUDNN_RNN_NO_BIAS ? 0 : bias == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1;
    is->directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
    is->layers = layers;
    is->input = input_mode == CUDNN_SKIP_INPUT ? 0 : (size_t)input;
    is->hidden = (size_t)hidden;
    is->output = projection > 0 ? (size_t)projection : (size_t)hidden;
    is->element = bytes_of(is->type);
    return 1;
}

static size_t columns_of(const struct network *is, int layer, int recurrent)
{
    if (recurrent)
        return is->output;
    return layer ? is->output * (size_t)is->directions : is->input;
}

/* The elements of all matrices of one layer in one direction. */
static size_t matrices_of(const struct network *is, int layer)
{
    size_t rows = (size_t)is->gates * is->hidden;
    size_t projection = is->output < is->hidden ? is->output * is->hidden : 0;
    return rows * (columns_of(is, layer, 0) + columns_of(is, layer, 1)) + projection;
}

static size_t biases_of(const struct network *is)
{
    return (size_t)is->biases * (size_t)is->gates * is->hidden;
}

static size_t elements_before(const struct network *is, int pseudo_layer)
{
    size_t sum = 0;
    for (int i = 0; i < pseudo_layer; i++)
        sum += matrices_of(is, i / is->directions);
    return sum;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                         size_t *bytes)
{
    struct network is;
    (void)handle;
    if (!describe(descriptor, &is))
        return CUDNN_STATUS_BAD_PARAM;
    size_t pairs = (size_t)is.layers * (size_t)is.directions;
    *bytes = (elements_before(&is, (int)pairs) + pairs * biases_of(&is)) * is.element;
    return CUDNN_STATUS_SUCCESS;
}

static void shape(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, size_t rows, size_t columns)
{
    int sizes[3] = {1, (int)rows, (int)columns}, steps[3] = {(int)(rows * columns), (int)columns, 1};
    REAL(cudnnSetTensorNdDescriptor)(tensor, type, 3, sizes, steps);
}

/* Where the elements of a matrix of one layer begin, and its shape; 0 columns: it is not there. Their
   numbers: those of the input's gates, of the recurrent ones, then the projection. */
static size_t matrix_of(const struct network *is, int pseudo_layer, int number, size_t *rows,
                        size_t *columns)
{
    int layer = pseudo_layer / is->directions, recurrent = number >= is->gates;
    size_t at = elements_before(is, pseudo_layer), gates = (size_t)is->gates * is->hidden;
    if (number == 2 * is->gates) {
        *rows = is->output;
        *columns = is->output < is->hidden ? is->hidden : 0;
        return at + gates * (columns_of(is, layer, 0) + columns_of(is, layer, 1));
    }
    *rows = is->hidden;
    *columns = columns_of(is, layer, recurrent);
    if (recurrent)
        at += gates * columns_of(is, layer, 0);
    return at + (size_t)(number % is->gates) * is->hidden * *columns;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      int32_t pseudo_layer, size_t bytes, const void *weights,
                                      int32_t number, cudnnTensorDescriptor_t matrix,
                                      void **matrix_address, cudnnTensorDescriptor_t bias,
                                      void **bias_address)
{
    struct network is;
    size_t rows, columns;
    (void)handle, (void)bytes;
    if (!describe(descriptor, &is))
        return CUDNN_STATUS_BAD_PARAM;
    size_t at = matrix_of(&is, pseudo_layer, number, &rows, &columns);
    if (matrix_address)
        *matrix_address = columns ? (char *)weights + at * is.element : NULL;
    if (matrix && columns)
        shape(matrix, is.type, rows, columns);
    int has_bias = number < 2 * is.gates && number / is.gates < is.biases;
    at = elements_before(&is, is.layers * is.directions) +
         (size_t)pseudo_layer * biases_of(&is) + (size_t)number * is.hidden;
    if (bias_address)
        *bias_address = has_bias ? (char *)weights + at * is.element : NULL;
    if (bias && has_bias)
        shape(bias, is.type, is.hidden, 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t input,
                                        size_t *work, size_t *reserve)
{
    struct network is;
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int steps, rows, width, length;
    double fill; /* as wide as any kind of number */
    (void)handle;
    if (!describe(descriptor, &is) ||
        REAL(cudnnGetRNNDataDescriptor)(input, &type, &layout, &steps, &rows, &width, 1, &length,
                                        &fill))
        return CUDNN_STATUS_BAD_PARAM;
    size_t tokens = (size_t)steps * (size_t)rows, pairs = (size_t)is.layers * (size_t)is.directions;
    size_t states = is.gates == 4 ? 2 : 1; /* an LSTM has a cell beside its output */
    size_t gates = tokens * (size_t)is.gates * is.hidden * is.element;
    size_t kept = tokens * ((size_t)is.gates + states) * is.hidden * is.element;
    size_t between = tokens * is.output * (size_t)is.directions * is.element;
    vc_report(VC_ASSUMED, "cudnnGetRNNTempSpaceSizes: as large as gates, states and outputs");
    if (work)
        *work = gates * (size_t)is.directions + between;
    if (reserve)
        *reserve = mode == CUDNN_FWD_MODE_TRAINING
                       ? kept * pairs + between * (size_t)(is.layers - 1)
                       : 0;
    return CUDNN_STATUS_SUCCESS;
}
