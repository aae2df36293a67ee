/* Answers questions about a card by its compute capability (CUDA programming guide, table of technical
   specifications). cudaDeviceAttr and CUdevice_attribute share their numbers. */
#include "virtual.h"

enum {
    MAX_THREADS_PER_BLOCK = 1,
    MAX_BLOCK_X = 2,
    MAX_BLOCK_Y = 3,
    MAX_BLOCK_Z = 4,
    MAX_GRID_X = 5,
    MAX_GRID_Y = 6,
    MAX_GRID_Z = 7,
    SHARED_PER_BLOCK = 8,
    CONSTANT_MEMORY = 9,
    WARP_SIZE = 10,
    MAX_PITCH = 11,
    REGISTERS_PER_BLOCK = 12,
    CLOCK_KHZ = 13,
    TEXTURE_ALIGNMENT = 14,
    MULTIPROCESSORS = 16,
    CONCURRENT_KERNELS = 31,
    PCI_BUS = 33,
    MEMORY_CLOCK_KHZ = 36,
    MEMORY_BUS_BITS = 37,
    L2_BYTES = 38,
    THREADS_PER_SM = 39,
    ASYNC_ENGINES = 40,
    UNIFIED_ADDRESSING = 41,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    STREAM_PRIORITIES = 78,
    SHARED_PER_SM = 81,
    REGISTERS_PER_SM = 82,
    MANAGED_MEMORY = 83,
    MULTI_GPU_GROUP = 85,
    PAGEABLE_ACCESS = 88,
    CONCURRENT_MANAGED = 89,
    COMPUTE_PREEMPTION = 90,
    COOPERATIVE_LAUNCH = 95,
    SHARED_PER_BLOCK_OPTIN = 97,
    CAN_FLUSH_REMOTE_WRITES = 98,
    VIRTUAL_MEMORY = 102,
    POSIX_HANDLES = 103,
    BLOCKS_PER_SM = 106,
    MEMORY_POOLS = 115,
};

/* Shared memory of an SM in KiB, and how many threads and blocks it holds. */
static void sizes(const struct vc_kind *card, int *shared_kib, int *threads, int *blocks)
{
    int sm = card->major * 10 + card->minor;
    *shared_kib = 100, *threads = 1536, *blocks = 24; /* 8.6, 8.9, 12.x */
    if (sm >= 90 && sm < 120)
        *shared_kib = 228, *threads = 2048, *blocks = 32;
    else if (sm == 80)
        *shared_kib = 164, *threads = 2048, *blocks = 32;
    else if (sm == 75)
        *shared_kib = 64, *threads = 1024, *blocks = 16;
    else if (sm < 75)
        *shared_kib = 96, *threads = 2048, *blocks = 32;
}

int vc_attribute(int attribute)
{
    return vc_attribute_of(vc_current_card(), attribute);
}

int vc_attribute_of(int number, int attribute)
{
    const struct vc_kind *card = vc_kind(number);
    int shared_kib, threads, blocks;
    sizes(card, &shared_kib, &threads, &blocks);
    switch (attribute) {
    case MAX_THREADS_PER_BLOCK:
    case MAX_BLOCK_X:
    case MAX_BLOCK_Y:
        return 1024;
    case MAX_BLOCK_Z:
        return 64;
    case MAX_GRID_X:
    case MAX_PITCH:
        return 2147483647;
    case MAX_GRID_Y:
    case MAX_GRID_Z:
        return 65535;
    case SHARED_PER_BLOCK:
        return 48 << 10;
    case CONSTANT_MEMORY:
    case REGISTERS_PER_BLOCK:
    case REGISTERS_PER_SM:
        return 64 << 10;
    case WARP_SIZE:
        return 32;
    case CLOCK_KHZ:
        return 1410000;
    case TEXTURE_ALIGNMENT:
        return 512;
    case MULTIPROCESSORS:
        return card->multiprocessors;
    case PCI_BUS:
        return 1 + vc_machine_card(number);
    case MEMORY_CLOCK_KHZ:
        return 1215000;
    case MEMORY_BUS_BITS:
        return 5120;
    case L2_BYTES:
        return 40 << 20;
    case THREADS_PER_SM:
        return threads;
    case ASYNC_ENGINES:
        return 3;
    case CAPABILITY_MAJOR:
        return card->major;
    case CAPABILITY_MINOR:
        return card->minor;
    case SHARED_PER_SM:
        return shared_kib << 10;
    case SHARED_PER_BLOCK_OPTIN: /* a block leaves 1 KiB to the system, from 8.0 on */
        return (card->major >= 8 ? shared_kib - 1 : shared_kib) << 10;
    case BLOCKS_PER_SM:
        return blocks;
    case CONCURRENT_KERNELS:
    case UNIFIED_ADDRESSING:
    case STREAM_PRIORITIES:
    case MANAGED_MEMORY:
    case MULTI_GPU_GROUP:
    case PAGEABLE_ACCESS:
    case CONCURRENT_MANAGED:
    case COMPUTE_PREEMPTION:
    case COOPERATIVE_LAUNCH:
    case CAN_FLUSH_REMOTE_WRITES:
    case VIRTUAL_MEMORY:
    case POSIX_HANDLES:
    case MEMORY_POOLS:
        return 1;
    default:
        return 0;
    }
}

/* Which of the compiled variants of a kernel the card would run. Libraries that hold variants for
   several architectures choose their tuning by it, and fail on one that they were not built for. */
static int compiled[64], compiled_count;

void vc_add_compiled(int version)
{
    if (compiled_count < 64)
        compiled[compiled_count++] = version;
}

int vc_binary_version(void)
{
    static const int common[] = {60, 70, 75, 80, 86, 90, 100, 120};
    const struct vc_kind *card = vc_kind(vc_current_card());
    const int *list = compiled_count ? compiled : common;
    int count = compiled_count ? compiled_count : (int)(sizeof common / sizeof *common);
    int best = 0, sm = card->major * 10 + card->minor;
    for (int i = 0; i < count; i++) {
        int runs = list[i] <= sm && (!compiled_count || list[i] / 10 == card->major);
        if (runs && list[i] > best)
            best = list[i];
    }
    return best ? best : sm;
}
