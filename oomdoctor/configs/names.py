"""Names of the classes that hold a trainer's arguments."""

HF_CONFIGS = ("TrainingArguments", "Seq2SeqTrainingArguments")
TRL_CONFIGS = ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "ORPOConfig")
