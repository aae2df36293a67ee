/* Nothing of it is needed to declare functions; not every wheel has it. */
