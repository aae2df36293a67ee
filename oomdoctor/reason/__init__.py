"""From findings to an answer: ranking, balance sheet, next measurement, prescriptions."""
