/* Sums and the like over what several ranks hold, element by element. An element is known where it is
   known of every rank. */
#include "ranks.h"

#include <string.h>

/* As nccl.h numbers them; that header is not in every environment. */
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };
enum { SUM, PRODUCT, LARGEST, SMALLEST, AVERAGE, OPERATIONS };

/* A long double has 64 bits for its digits here, so that it holds every number of these types. */
typedef long double number;

size_t vc_size_of_type(int type)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type < 0 || type > BFLOAT16 ? 0 : sizes[type];
}

static int is_whole(int type)
{
    return type < FLOAT16;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    if (size >= 0x7c00) /* infinite, or no number */
        return from_bits(sign | 0x7f800000 | (size & 0x3ff) << 13);
    /* the exponent of a float is 112 larger; this is right for the smallest numbers as well */
    float value = from_bits(size << 13) * from_bits((uint32_t)(127 + 112) << 23);
    return from_bits(sign | bits_of(value));
}

static uint16_t to_half(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) /* rounds to more than a half holds */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below the smallest normal one: in steps of 2 to the -24th */
        float steps = from_bits(size) * 16777216.0f;
        uint32_t whole = (uint32_t)steps;
        float rest = steps - (float)whole;
        return (uint16_t)(sign | (whole + (rest > 0.5f || (rest == 0.5f && whole & 1))));
    }
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (size - 0x38000000) >> 13);
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define AS(kind) \
    do { \
        kind value; \
        memcpy(&value, at, sizeof value); \
        return (number)value; \
    } while (0)

static number get(int type, const unsigned char *at)
{
    uint16_t half;
    memcpy(&half, at, type == FLOAT16 || type == BFLOAT16 ? sizeof half : 0);
    switch (type) {
    case INT8:
        AS(int8_t);
    case UINT8:
        AS(uint8_t);
    case INT32:
        AS(int32_t);
    case UINT32:
        AS(uint32_t);
    case INT64:
        AS(int64_t);
    case UINT64:
        AS(uint64_t);
    case FLOAT16:
        return (number)from_half(half);
    case FLOAT64:
        AS(double);
    case BFLOAT16:
        return (number)from_bits((uint32_t)half << 16);
    default:
        AS(float);
    }
}

static void set(int type, unsigned char *at, number value)
{
    int64_t whole = !is_whole(type)                   ? 0
                    : value >= 9223372036854775808.0L ? (int64_t)(uint64_t)value
                                                      : (int64_t)value;
    float single = (float)value;
    double twice = (double)value;
    uint16_t half = type == FLOAT16 ? to_half(single) : to_bfloat(single);
    const void *from = is_whole(type)       ? (const void *)&whole /* its low bytes come first */
                       : type == FLOAT32    ? (const void *)&single
                       : type == FLOAT64    ? (const void *)&twice
                                            : (const void *)&half;
    memcpy(at, from, vc_size_of_type(type));
}

static number combine(int operation, number one, number other)
{
    switch (operation) {
    case PRODUCT:
        return one * other;
    case LARGEST:
        return one > other ? one : other;
    case SMALLEST:
        return one < other ? one : other;
    default:
        return one + other;
    }
}

void vc_reduce(int type, int operation, int parts, const struct vc_values *from, size_t offset,
               struct vc_values *into)
{
    size_t size = vc_size_of_type(type);
    if (!size || operation < 0 || operation >= OPERATIONS) {
        memset(into->known, 0, into->bytes); /* an operation of the program's own */
        return;
    }
    for (size_t at = 0; at + size <= into->bytes; at += size) {
        number result = 0;
        int known = 1;
        for (int i = 0; i < parts; i++) {
            number value = get(type, from[i].data + offset + at);
            result = i ? combine(operation, result, value) : value;
            known &= !memchr(from[i].known + offset + at, 0, size);
        }
        if (operation == AVERAGE)
            result /= parts;
        set(type, into->data + at, result);
        memset(into->known + at, known, size);
    }
}
