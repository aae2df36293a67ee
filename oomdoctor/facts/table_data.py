"""Registry rows of a data set that was counted: lengths, truncation, padding, packing, the peak."""

from __future__ import annotations

from oomdoctor.facts.spec import count, ratio, size

COUNT = "oomdoctor data FILE --tokenizer DIR --config CONFIG"

ROWS = (
    count("data.rows", "Rows of the data that could be counted.", obtain=COUNT),
    count("data.bad_rows", "Rows of the data that could not be read.", obtain=COUNT),
    count("data.sequences", "Sequences in them: two for each preference pair.", obtain=COUNT),
    count("data.tokens", "Tokens of all sequences, before truncation.", obtain=COUNT),
    count("data.shortest_row", "Tokens of the shortest sequence.", obtain=COUNT),
    count("data.longest_row", "Tokens of the longest sequence, before truncation.", obtain=COUNT),
    count("data.p50_row", "Tokens that half of the sequences do not exceed.", obtain=COUNT),
    count("data.p95_row", "Tokens that 95 of 100 sequences do not exceed.", obtain=COUNT),
    count("data.p99_row", "Tokens that 99 of 100 sequences do not exceed.", obtain=COUNT),
    ratio("data.mean_row", "Mean tokens of a sequence, before truncation.", obtain=COUNT),
    ratio("data.chars_per_token", "Characters that one token stands for.", obtain=COUNT),
    count("data.over_limit_rows", "Sequences longer than train.seq_len.", obtain=COUNT),
    ratio("data.over_limit_share", "Share of sequences longer than train.seq_len.", obtain=COUNT),
    ratio("data.cut_share", "Share of all tokens that truncation cuts off.", obtain=COUNT),
    ratio(
        "data.padding_waste",
        "Share of computed tokens that are padding, as the job pads or packs.",
        obtain=COUNT,
    ),
    ratio("data.padding_waste_max", "The same if every row is padded to the limit.", obtain=COUNT),
    ratio(
        "data.padding_waste_sorted", "The same if rows are batched by their length.", obtain=COUNT
    ),
    ratio(
        "data.packing_efficiency",
        "Share of packed rows that is no padding (best-fit decreasing).",
        obtain=COUNT,
    ),
    count("data.peak_tokens", "Tokens of the largest batch of an epoch.", obtain=COUNT),
    count("data.median_tokens", "Tokens of the median batch.", obtain=COUNT),
    ratio("data.peak_factor", "Largest batch / median batch, in tokens.", obtain=COUNT),
    size("data.peak_bytes", "Activations and logits of the largest batch (formula)."),
    size("data.median_bytes", "Activations and logits of the median batch (formula)."),
)
