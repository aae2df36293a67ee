"""Search strategies: pure, they ask for trials and never run one."""
