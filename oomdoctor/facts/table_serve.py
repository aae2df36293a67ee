"""Registry rows of inference engines: which one, what it placed where, and what did not fit."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size, text, version

LOG = "Give the engine's log from its start: the lines about layers, buffers and free memory."
ASK_DEVICES = "nvidia-smi --query-gpu=index,memory.total,memory.free --format=csv"

ROWS = (
    enum(
        "serve.engine",
        "Inference engine whose log or command line was recognised.",
        (
            "vllm",
            "sglang",
            "tgi",
            "llama.cpp",
            "ollama",
            "lmdeploy",
            "tensorrt-llm",
            "tensorrt",
            "onnxruntime",
            "ctranslate2",
            "triton",
            "mlc",
            "exllama",
            "openvino",
            "diffusion-ui",
            "diffusers",
        ),
        obtain="Name the engine: oomdoctor diagnose LOG --fact serve.engine=llama.cpp",
        cost_s=5,
    ),
    text(
        "serve.says",
        "What the engine states, by short names, one per line: no-cache-blocks,"
        " request-exceeds-cache, sampler-warmup, share-not-free, profile-disturbed, image-profile,"
        " raise-static-pool, lower-static-pool, cards-unequal, token-budget, server-warmup,"
        " buffer-limit, not-recovered, weights-exceed-device, arena-limit, pool-full; or nothing.",
    ),
    boolean("serve.ggml", "ggml works in the engine: llama.cpp, or a program built on it."),
    enum(
        "serve.failed_buffer",
        "Which of the engine's buffers found no room: weights, key/value cache, the buffer of the "
        "computation, the vision tower, or one that was asked for while requests ran.",
        ("weights", "cache", "compute", "vision", "run"),
        obtain=LOG,
        cost_s=5,
    ),
    count("serve.gpu_layers", "Layers that the engine puts on the GPU.", obtain=LOG, cost_s=5),
    count("serve.model_layers", "Layers of the model as the engine counts them.", obtain=LOG),
    boolean("serve.flash_attention", "The engine computes attention in tiles.", obtain=LOG),
    count("serve.parallel", "Requests that the engine keeps room for at once.", obtain=LOG),
    count("serve.ubatch", "Tokens per pass of the engine (n_ubatch)."),
    count("serve.train_context", "Context that the model was trained for (n_ctx_train)."),
    count("serve.devices", "Devices that the engine uses.", obtain=ASK_DEVICES, cost_s=2),
    size("serve.compute_buffer", "Compute buffer of the device that the engine printed."),
    size("serve.host_buffers", "Buffers that the engine placed in main memory."),
    ratio(
        "serve.fullest_share",
        "Planned bytes over available bytes on the device that the engine fills most.",
        obtain=LOG,
    ),
    ratio("serve.emptiest_share", "The same of the device that it fills least, if it has several."),
    ratio(
        "serve.load_spread", "Bytes placed on the device that holds most over those on the least."
    ),
    size("serve.required", "Bytes that the engine plans for all devices together.", obtain=LOG),
    size("serve.available", "Bytes that the engine found free on all devices together."),
    text("serve.tensor_split", "Shares of the devices as they were set by hand."),
    text("serve.kv_type", "Number format of the key/value cache."),
    size("serve.host_required", "Main memory that the engine says it needs."),
    size("serve.host_available", "Main memory that the engine found free."),
    size("serve.initial_usage", "Device memory in use before the engine loaded anything."),
    size("serve.free_before", "Free device memory when the engine's profile began."),
    size("serve.free_after", "Free device memory when the engine's profile ended."),
    size("serve.room", "Free device memory just before the component that was not created."),
    size("serve.prompt_cache", "Main memory that the cache of past prompts holds.", obtain=LOG),
    size("serve.prompt_cache_limit", "Limit of that cache (0: it is off)."),
    count("serve.prompt_cache_entries", "Prompts in that cache."),
    count("serve.prefill_tokens", "Prompt tokens that the engine's warm-up ran.", obtain=LOG),
    count("serve.total_tokens", "Tokens in one batch that the engine's warm-up ran."),
    size("serve.sleep_freed", "Device memory that a sleeping engine gave back."),
    size("serve.sleep_in_use", "Device memory still in use after that, of all processes."),
    boolean("serve.vision", "A vision tower (mmproj) is loaded beside the model."),
    count("serve.pipeline_parallel", "pipeline_parallel_size: stages that share the layers."),
    count("serve.adapters", "Adapters that are served at once (max_loras)."),
    count("serve.adapter_rank", "Largest rank of a served adapter (max_lora_rank)."),
    size("serve.weights_on_host", "Weights of a rank that stay in main memory (cpu_offload_gb)."),
    size("serve.swap", "Main memory of each rank for caches that were put aside (swap_space)."),
    text("serve.file_type", "File type of a GGUF file, such as q4_k_m."),
    enum(
        "serve.offload",
        "What a pipeline of diffusers keeps in main memory: networks, or single layers.",
        ("none", "model", "sequential"),
    ),
    boolean("serve.tiled", "A pipeline decodes its images in tiles."),
    count("serve.images", "Images that a pipeline makes at once."),
    boolean("serve.retried", "The tool went on with smaller pieces after the failure."),
    version("env.ollama", "ollama version.", obtain="ollama --version", cost_s=5),
)
