"""Does memory grow, how, and until when: verdicts on series of figures, without any input or clock.

points -> windows -> shape (level, rising, slowing, teeth) -> verdict (which kind) and forecast
"""
